"""Sources that try to have the compiler read a file; {path} stands for the file."""

# Those that NVRTC 13.5 falls for when nobody checks: the file's content stands in its log.
LEAKING = {
    "quoted": '#include "{path}"\n',
    "angle": "#include <{path}>\n",
    "macro": '#define F "{path}"\n#include F\n',
    "stringified macro": "#define S(x) #x\n#define T(x) S(x)\n#include T({path})\n",
    "include_next": '#include_next "{path}"\n',
    "digraph": '%:include "{path}"\n',
    "digraph next": "%:include_next <{path}>\n",
    "splice in keyword": '#inc\\\nlude "{path}"\n',
    "splice after windows line": '#inc\\\r\nlude "{path}"\n',
    "double splice": '#incl\\\n\\\nude "{path}"\n',
    "splice in digraph": '%\\\n:include "{path}"\n',
    "splice before name": '#include \\\n"{path}"\n',
    "splice in name": '#include "{path}\\\n"\n',
    "splice inside name": '#include "/\\\n{path}"\n',
    "form feed and tab": '\v#\tinclude\f"{path}"\n',
    "carriage return": '#include\r "{path}"\n',
    "comment before": '/* x */ # include "{path}"\n',
    "comment inside": '# /* y\n */ include /**/ "{path}"\n',
    "comment with hash": '# /* # " */ include "{path}"\n',
    "comment after keyword": '#include/*\n*/"{path}"\n',
    "line before is a comment": '// a \\\n\n#include "{path}"\n',
    "not in a string": 'auto r = R"(\n)";\n#include "{path}"\n',
    "not in a comment": 'const char* r = R"x(\n/* )x";\n#include "{path}"\n// */\n',
    "not in a character": "int a = 1'000; // '\n#include \"{path}\"\n",
    "after a skipped quote": '#if 0\n"\n#endif\n#include "{path}"\n',
    "keyword is a macro": '#define include error\n#include "{path}"\n',
    "dots behind a folder": (
        "#include <cooperative_groups/../../../../../../../../../../../../../..{path}>\n"
    ),
}

# Those that this compiler does not take, or that another might.
OTHERS = {
    "import": '#import "{path}"\n',
    "embed": 'const unsigned char x[] = {{\n#embed "{path}"\n}};\n',
    "trigraph": '??=include "{path}"\n',
    "trigraph splice": '#inc??/\nlude "{path}"\n',
    "splice with blanks": '#inc\\  \nlude "{path}"\n',
    "splice with tab": '#inc\\\t\nlude "{path}"\n',
    "blank splice hides the next line": '// x \\ \n#include "{path}"\n',
    "carriage returns only": 'int a;\r#include "{path}"\r',
    "no-break space": '#\u00a0include "{path}"\n',
    "line separator": 'int a;\u2028#include "{path}"\n',
    "extra": '#include <{path}> "{path}"\n',
    "line": '#line 1 "{path}"\nint x = oops;\n',
    "line marker": '# 1 "{path}"\nint x = oops;\n',
    "pushed line marker": '# 1 "{path}" 1 3\nint x = oops;\n',
    "marker after comment": '/*\n*/ # 1 "{path}"\nint x = oops;\n',
    "marker after a blank splice": 'int b; // \\ \n# 1 "{path}"\nint x = oops;\n',
    "has include": '#if __has_include("{path}")\n#error yes\n#endif\n',
    "has include by macro": '#define H __has_include\n#if H("{path}")\n#error yes\n#endif\n',
    "using": '#using "{path}"\n',
    "nul": 'int a;\0\n#include "{path}"\n',
}

# Those that go past the check because they include nothing; the compiler must make nothing of them.
HARMLESS = {
    "pragma dependency": '#pragma GCC dependency "{path}"\n',
    "pragma include": '#pragma include "{path}"\n',
    "pragma operator": '_Pragma("include \\"{path}\\"")\n',
    "include alias": '#pragma include_alias("stdio.h", "{path}")\n#include "stdio.h"\n',
    "header macro": "#define stdio {path}\n#include <stdio.h>\n",
    "header unit": 'import "{path}";\n',
    "universal character": '#\\u0069nclude "{path}"\n',
    "split keyword": '#in/**/clude "{path}"\n',
    "assembler include": '__global__ void q() {{ asm(".include \\"{path}\\""); }}\n',
    "assembler file": (
        '__global__ void q() {{ asm(".file 1 \\"{path}\\"\\n.loc 1 1 1\\nbad;"); }}\n'
    ),
    "message": '#pragma message("{path}")\n',
    "ident": '#ident "{path}"\n',
    "continued after a header": '#include <stdio.h> \\\n "{path}"\n',
    "wide hash": '\uff03include "{path}"\n',
    "precompiled": '#pragma hdrstop("{path}")\n',
    "thrust": (
        '#define __THRUST_HOST_SYSTEM_ALGORITH_DETAIL_HEADER_INCLUDE(x) "{path}"\n#include'
        " <cuda/std/cstdint>\n"
    ),
}
