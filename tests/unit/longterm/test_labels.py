"""Tags and metadata of memories that become one stay within the limits of a memory."""

from hypothesis import given
from hypothesis import strategies as st

from shared.foundation import validation
from shared.memory.longterm.labels import join_metadata, join_tags, requires_permission

TAGS = st.lists(
    st.text("abc", min_size=1, max_size=4) | st.sampled_from(["anti-pattern", "inferred"]), max_size=90
)


@given(TAGS, TAGS)
def test_tags_are_joined_in_order_and_the_newest_are_kept_within_the_limit(
    present: list[str], added: list[str]
) -> None:
    tags = join_tags(present, added)
    every_tag = list(dict.fromkeys([*present, *added]))
    assert len(tags) == min(len(every_tag), validation.MAX_TAGS)
    assert tags == [tag for tag in every_tag if tag in tags], "in the order in which they came"
    assert {"anti-pattern", "inferred"} & set(every_tag) <= set(tags)
    left_out = [tag for tag in every_tag if tag not in tags]
    others = [tag for tag in every_tag if tag not in {"anti-pattern", "inferred"}]
    assert left_out == others[: len(left_out)], "the oldest are left out"
    assert join_tags(tags, []) == tags


def test_present_metadata_stays_and_a_required_permission_is_never_lost() -> None:
    full = {f"k{number}": "v" for number in range(validation.MAX_METADATA_PAIRS)}
    joined = join_metadata({"a": "1", "requires_user_permission": "false"}, {"a": "2", "b": "3"})
    assert joined == {"a": "1", "requires_user_permission": "false", "b": "3"}
    for present, added in (
        ({"requires_user_permission": "false"}, {"requires_user_permission": "True "}),
        (full, {"requires_user_permission": "true"}),
        ({"requires_user_permission": "true"}, full),
    ):
        joined = join_metadata(present, added)
        assert requires_permission(joined)
        assert len(joined) <= validation.MAX_METADATA_PAIRS
