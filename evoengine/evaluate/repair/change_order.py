"""All changes of a kernel, the most likely first.

How likely a change is follows from its kind: how often mistakes are of that kind, divided by a
power of the number of changes of the kind that this kernel has. A kind of which there are few in
the kernel is tried through before one with many places. What the rest of the source says counts
too (change_evidence).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

from evoengine.candidate.kernel_file import Candidate
from evoengine.evaluate.repair.change_evidence import ChangeEvidence
from evoengine.evaluate.repair.change_weights import (
    COUNT_POWER,
    LIKE_WEIGHT,
    USUAL_WEIGHT,
    WEIGHTS,
    weight,
)
from evoengine.evaluate.repair.expression_weights import EXPRESSION_WEIGHTS
from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.ahead_changes import ahead_changes
from evoengine.evaluate.repair.kinds.alike_changes import alike_changes
from evoengine.evaluate.repair.kinds.anew_changes import anew_changes
from evoengine.evaluate.repair.kinds.arrival_changes import arrival_changes
from evoengine.evaluate.repair.kinds.axis_changes import axis_changes
from evoengine.evaluate.repair.kinds.barrier_changes import barrier_changes
from evoengine.evaluate.repair.kinds.begin_changes import begin_changes
from evoengine.evaluate.repair.kinds.byte_changes import byte_changes
from evoengine.evaluate.repair.kinds.call_changes import call_changes
from evoengine.evaluate.repair.kinds.choice_changes import choice_changes
from evoengine.evaluate.repair.kinds.combined_changes import combined_changes
from evoengine.evaluate.repair.kinds.condition_changes import condition_changes
from evoengine.evaluate.repair.kinds.constant_changes import constant_changes
from evoengine.evaluate.repair.kinds.conversion_changes import conversion_changes
from evoengine.evaluate.repair.kinds.coordinate_changes import coordinate_changes
from evoengine.evaluate.repair.kinds.count_changes import count_changes
from evoengine.evaluate.repair.kinds.counter_changes import counter_changes
from evoengine.evaluate.repair.kinds.coupled_changes import coupled_changes
from evoengine.evaluate.repair.kinds.difference_changes import AS_A_LIKE_KERNEL, difference_changes
from evoengine.evaluate.repair.kinds.digit_changes import digit_changes
from evoengine.evaluate.repair.kinds.element_changes import element_changes
from evoengine.evaluate.repair.kinds.exchanged_changes import exchanged_changes
from evoengine.evaluate.repair.kinds.extent_changes import extent_changes
from evoengine.evaluate.repair.kinds.fence_changes import fence_changes
from evoengine.evaluate.repair.kinds.first_value_changes import first_value_changes
from evoengine.evaluate.repair.kinds.fragment_changes import fragment_changes
from evoengine.evaluate.repair.kinds.global_reset_changes import global_reset_changes
from evoengine.evaluate.repair.kinds.guard_changes import guard_changes
from evoengine.evaluate.repair.kinds.header_changes import header_changes
from evoengine.evaluate.repair.kinds.index_changes import index_changes
from evoengine.evaluate.repair.kinds.index_sum_changes import index_sum_changes
from evoengine.evaluate.repair.kinds.inside_changes import inside_changes
from evoengine.evaluate.repair.kinds.instruction_changes import instruction_changes
from evoengine.evaluate.repair.kinds.integer_changes import integer_changes
from evoengine.evaluate.repair.kinds.joint_changes import joint_changes
from evoengine.evaluate.repair.kinds.kept_changes import kept_changes
from evoengine.evaluate.repair.kinds.lane_changes import lane_changes
from evoengine.evaluate.repair.kinds.lane_group_changes import lane_group_changes
from evoengine.evaluate.repair.kinds.launch_changes import launch_changes
from evoengine.evaluate.repair.kinds.layout_changes import layout_changes
from evoengine.evaluate.repair.kinds.length_changes import length_changes
from evoengine.evaluate.repair.kinds.like_block_changes import like_block_changes
from evoengine.evaluate.repair.kinds.like_part_changes import like_part_changes
from evoengine.evaluate.repair.kinds.like_statement_changes import like_statement_changes
from evoengine.evaluate.repair.kinds.limit_changes import limit_changes
from evoengine.evaluate.repair.kinds.loop_changes import loop_changes
from evoengine.evaluate.repair.kinds.mask_changes import mask_changes
from evoengine.evaluate.repair.kinds.moment_changes import moment_changes
from evoengine.evaluate.repair.kinds.moved_changes import moved_changes
from evoengine.evaluate.repair.kinds.name_changes import name_changes
from evoengine.evaluate.repair.kinds.namesake_changes import namesake_changes
from evoengine.evaluate.repair.kinds.number_changes import number_changes
from evoengine.evaluate.repair.kinds.omitted_changes import omitted_changes
from evoengine.evaluate.repair.kinds.operator_changes import operator_changes
from evoengine.evaluate.repair.kinds.order_changes import order_changes
from evoengine.evaluate.repair.kinds.own_changes import own_changes
from evoengine.evaluate.repair.kinds.owner_changes import owner_changes
from evoengine.evaluate.repair.kinds.padded_size_changes import padded_size_changes
from evoengine.evaluate.repair.kinds.pair_changes import pair_changes
from evoengine.evaluate.repair.kinds.part_changes import part_changes
from evoengine.evaluate.repair.kinds.part_end_changes import part_end_changes
from evoengine.evaluate.repair.kinds.pitch_changes import pitch_changes
from evoengine.evaluate.repair.kinds.plan_factor_changes import plan_factor_changes
from evoengine.evaluate.repair.kinds.plan_rounding_changes import plan_rounding_changes
from evoengine.evaluate.repair.kinds.plan_size_changes import plan_size_changes
from evoengine.evaluate.repair.kinds.plan_value_changes import plan_value_changes
from evoengine.evaluate.repair.kinds.range_changes import range_changes
from evoengine.evaluate.repair.kinds.reduction_changes import reduction_changes
from evoengine.evaluate.repair.kinds.rescaled_changes import rescaled_changes
from evoengine.evaluate.repair.kinds.rest_changes import rest_changes
from evoengine.evaluate.repair.kinds.round_changes import round_changes
from evoengine.evaluate.repair.kinds.scale_changes import scale_changes
from evoengine.evaluate.repair.kinds.scoped_constant_changes import scoped_constant_changes
from evoengine.evaluate.repair.kinds.share_changes import share_changes
from evoengine.evaluate.repair.kinds.shared_condition_changes import shared_condition_changes
from evoengine.evaluate.repair.kinds.shared_part_changes import shared_part_changes
from evoengine.evaluate.repair.kinds.sibling_changes import sibling_changes
from evoengine.evaluate.repair.kinds.stage_changes import stage_changes
from evoengine.evaluate.repair.kinds.statement_changes import statement_changes
from evoengine.evaluate.repair.kinds.stride_changes import stride_changes
from evoengine.evaluate.repair.kinds.swizzle_changes import swizzle_changes
from evoengine.evaluate.repair.kinds.term_changes import term_changes
from evoengine.evaluate.repair.kinds.tile_changes import tile_changes
from evoengine.evaluate.repair.kinds.twofold_changes import equal_arguments, twofold_changes
from evoengine.evaluate.repair.kinds.unread_changes import unread_changes
from evoengine.evaluate.repair.kinds.unwritten_changes import unwritten_changes
from evoengine.evaluate.repair.kinds.update_changes import update_changes
from evoengine.evaluate.repair.kinds.updated_changes import updated_changes
from evoengine.evaluate.repair.kinds.warp_value_changes import warp_value_changes
from evoengine.evaluate.repair.source_change import SourceChange

MOST_CHANGES = 12000  # of a kernel: more are never tried in the time there is
_CODE_CHANGES = (
    # kinds of few places come first: of equal changes the first one counts
    ahead_changes,
    barrier_changes,
    inside_changes,
    constant_changes,
    namesake_changes,
    rescaled_changes,
    share_changes,
    joint_changes,
    fragment_changes,
    shared_part_changes,
    tile_changes,
    unwritten_changes,
    omitted_changes,
    moment_changes,
    round_changes,
    kept_changes,
    guard_changes,
    shared_condition_changes,
    padded_size_changes,
    like_block_changes,
    scoped_constant_changes,
    digit_changes,
    integer_changes,
    order_changes,
    update_changes,
    updated_changes,
    byte_changes,
    exchanged_changes,
    warp_value_changes,
    count_changes,
    global_reset_changes,
    lane_group_changes,
    swizzle_changes,
    begin_changes,
    arrival_changes,
    fence_changes,
    owner_changes,
    reduction_changes,
    coordinate_changes,
    loop_changes,
    scale_changes,
    number_changes,
    operator_changes,
    pitch_changes,
    name_changes,
    term_changes,
    call_changes,
    index_changes,
    index_sum_changes,
    instruction_changes,
    statement_changes,
    mask_changes,
    coupled_changes,
    sibling_changes,
    unread_changes,
    condition_changes,
    range_changes,
    moved_changes,
    stride_changes,
    element_changes,
    like_statement_changes,
    part_changes,
    counter_changes,
    conversion_changes,
    like_part_changes,
    layout_changes,
    rest_changes,
    stage_changes,
    combined_changes,
    twofold_changes,
    anew_changes,
    lane_changes,
    first_value_changes,
    extent_changes,
    limit_changes,
    length_changes,
    own_changes,
    axis_changes,
    choice_changes,
    pair_changes,
    part_end_changes,
)
# Kinds that have very many places: what a like expression beside it has is likelier than they say.
_OF_LIKE = ("part missing", "factor missing, beside", "factor missing, of a like")
_GENERAL = (
    "summand missing",
    "term of another",
    "factor missing",
    "factor of another",
    "factor of a digit",
    "times",
)


def ordered_changes(
    candidate: Candidate, likes: Sequence[Candidate] = (), only_likes: bool = False
) -> list[tuple[SourceChange, float]]:
    """Every change of a candidate's source once with its likeliness, the most likely first; `likes`
    are kernels of its task that are right, and with `only_likes` their changes are all.
    """
    of_likes = [change for like in likes for change in difference_changes(candidate, like)]
    changes = _once(candidate, of_likes if only_likes else chain(of_likes, _all(candidate)))
    evidence = ChangeEvidence(kernel_code(candidate))
    found = [evidence.of(change) for change, _ in changes]
    classes = [
        [(kind, item.uses_unused or item.reads_idle, item.is_familiar) for kind in kinds]
        for (_, kinds), item in zip(changes, found, strict=True)
    ]
    counts = Counter(chain.from_iterable(classes))
    has_unread = any(item.uses_unused for item in found)
    likeliness_of_likes = LIKE_WEIGHT / max(1, len(of_likes)) ** COUNT_POWER
    rated = [
        (
            change,
            likeliness_of_likes
            if change.like
            else max(
                weight(kind, item, has_unread, len(change.pieces)) / counts[own] ** COUNT_POWER
                for kind, own in zip(kinds, owns, strict=True)
            ),
        )
        for (change, kinds), item, owns in zip(changes, found, classes, strict=True)
    ]
    return sorted(rated, key=lambda item: -item[1])[:MOST_CHANGES]


def header_end(candidate: Candidate) -> int:
    """Where the device code begins in a candidate's source."""
    return len(candidate.source) - len(candidate.code.lstrip("\n"))


def kernel_code(candidate: Candidate) -> KernelCode:
    """The device code of a candidate, with the names of its tunables."""
    return KernelCode(candidate.source, header_end(candidate), tuple(candidate.tunables))


def _all(candidate: Candidate) -> Iterator[SourceChange]:
    end = header_end(candidate)
    yield from header_changes(candidate.source[:end])
    yield from plan_value_changes(candidate.source[:end])
    yield from launch_changes(candidate.source[:end], candidate.source[end:])
    yield from plan_size_changes(candidate.source[:end], candidate.source[end:])
    yield from plan_factor_changes(candidate.source[:end])
    yield from plan_rounding_changes(candidate.source[:end], candidate.source[end:])
    code = kernel_code(candidate)
    if not code.tokens.is_balanced:
        return  # macros hold brackets of their own: what belongs together cannot be told
    found = [change for changes in _CODE_CHANGES for change in changes(code)]
    yield from found
    yield from alike_changes(code, found)
    yield from equal_arguments(code, found)


def _once(
    candidate: Candidate, changes: Iterable[SourceChange]
) -> list[tuple[SourceChange, tuple[str, ...]]]:
    """The changes without those that write the same program as one before, each with all kinds of
    which it is: it is as likely as the likeliest.
    """
    found: dict[tuple[tuple[int, str, int], ...], SourceChange] = {}
    kinds: dict[tuple[tuple[int, str, int], ...], dict[str, None]] = {}
    for change in changes:
        olds = [candidate.source[item.start : item.end] for item in change.pieces]
        if any(item.new == old for item, old in zip(change.pieces, olds, strict=True)):
            continue  # it changes nothing
        key = tuple(sorted(map(_trimmed, change.pieces, olds)))
        kinds.setdefault(key, {})[change.kind] = None
        before = found.get(key)
        if before is None or _says_more(change, before):
            like = before.like if before is not None else ""
            found[key] = replace(change, like=like) if like else change
    return [(change, tuple(kinds[key])) for key, change in found.items()]


def _says_more(change: SourceChange, before: SourceChange) -> bool:
    """Whether the kind of a change says more of what it mends than that of an equal one."""
    if before.kind == AS_A_LIKE_KERNEL:
        return change.kind != AS_A_LIKE_KERNEL
    if change.kind.startswith("factor of a digit") and before.kind.startswith(_OF_LIKE):
        return False
    if change.kind in EXPRESSION_WEIGHTS and before.kind not in EXPRESSION_WEIGHTS:
        return EXPRESSION_WEIGHTS[change.kind] > WEIGHTS.get(before.kind, USUAL_WEIGHT)
    return before.kind.startswith(_GENERAL) and change.kind.startswith(_OF_LIKE)


def _trimmed(change: SourceChange, old: str) -> tuple[int, str, int]:
    """A change without what is equal at its begin and end, so that equal ones are found; layout
    does not count.
    """
    new, begin, end = change.new, 0, 0
    while begin < min(len(old), len(new)) and old[begin] == new[begin]:
        begin += 1
    while end < min(len(old), len(new)) - begin and old[-1 - end] == new[-1 - end]:
        end += 1
    kept = " ".join(new[begin : len(new) - end].split())
    return change.start + begin, kept, change.end - end
