from evoengine.evaluate.compile import compiler_log, ptxas_log


def test_paths_of_header_folders_are_cut_and_noise_is_gone() -> None:
    log = (
        "/opt/site/include/cuda_fp16.hpp(12): warning #1-D: odd\n  x\n  ^\n\n"
        'Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"\n\n'
        "ptxas info    : 0 bytes gmem\nptxas         .     0 bytes stack frame\n\0"
    )
    assert (
        compiler_log.cleaned(log, ["/opt/site/include"])
        == "cuda_fp16.hpp(12): warning #1-D: odd\n  x\n  ^"
    )


def test_a_kernel_that_the_plan_names_wrongly_is_shown_as_the_plans() -> None:
    log = (
        '__nv_name_map(2): error: identifier "nope" is undefined\n  #pragma nv_mangled_name'
        " nope<3>\n                          ^\n"
    )
    assert (
        compiler_log.cleaned(log, [])
        == 'launch plan: error: identifier "nope" is undefined\n  kernel: nope<3>'
    )


def test_long_logs_and_long_lines_are_cut_and_say_so() -> None:
    cut = compiler_log.cleaned("x" * 5000 + "\n" + "error: y\n" * 5000, [])
    assert len(cut.encode()) < compiler_log.MAX_LOG_BYTES + 100
    assert cut.splitlines()[0].endswith("x ...")
    assert cut.splitlines()[-1].startswith("... (") and cut.endswith("bytes in all)")


def test_lines_of_ptx_become_lines_of_the_candidate() -> None:
    ptx = (
        '.version 9.0\n.loc 1 7 2\nbogus.op;\n.loc 2 3 1\nworse.op;\n.file 1 "/k.cu"\n.file 2'
        ' "/opt/other.h"\n'
    )
    log = (
        "ptxas application ptx input, line 3; error   : Not an instruction\nptxas application ptx"
        " input, line 5; error   : Worse\n"
    )
    assert compiler_log.traced(log, ptx, "k.cu").splitlines() == [
        "k.cu(7): error: Not an instruction (inline assembly: bogus.op;)",
        "other.h(3): error: Worse (inline assembly: worse.op;)",
    ]
    assert compiler_log.traced(log, "", "k.cu") == log


def test_the_assemblers_report_is_read_for_each_kernel() -> None:
    log = (
        "ptxas info    : Compiling entry function '_Z1av' for 'sm_80'\n"
        "ptxas info    : Function properties for _Z1av\n"
        "ptxas         .     16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
        "ptxas info    : Used 24 registers, used 1 barriers, 256 bytes smem, 364 bytes cmem[0]\n"
        "ptxas info    : Function properties for _Z6helperv\n"
        "ptxas         .     400 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
    )
    assert ptxas_log.reports(log) == {"_Z1av": ptxas_log.AssemblerReport(24, 256, 16, 8, 12, 400)}
    assert ptxas_log.reports("nothing of the kind") == {}
