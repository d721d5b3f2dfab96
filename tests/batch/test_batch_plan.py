"""What is done, what is to be done, what is computed once; and groups given to workers that die."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.batch.dispatch import MAX_DEATHS, Dispatch
from localctx.batch.jobs import BadRow, Job
from localctx.batch.plan import DoneRow, Plan, make_plan
from localctx.batch.tasks import Corpus, Found, Task, tasks_of


def task(key: str, content: str = "", place: str = "p", problem: bool = False) -> Task:
    trouble = ("InputError", "gone", "") if problem else None
    return Task(1, key, key, content or key, "?", ("x",), place, problem=trouble)


def done(key: str, start: int = 0, *, is_error: bool = False) -> DoneRow:
    return DoneRow(key, start, start + 1, is_error)


def keys(plan: Plan) -> list[list[str]]:
    return [[one.key for one in group] for group in plan.groups]


def test_tasks_of_one_place_are_one_group_in_the_order_of_their_first() -> None:
    plan = make_plan([task("a", place="p"), task("b", place="q"), task("c", place="p")], [])
    assert keys(plan) == [["a", "c"], ["b"]]
    assert plan.n_open == 3


def test_what_is_done_is_not_done_again() -> None:
    tasks = [task("a"), task("b"), task("c")]
    plan = make_plan(tasks, [done("b"), done("c", 1, is_error=True), done("other", 2)])
    assert keys(plan) == [["a"]]
    assert (plan.n_answered, plan.n_failed, plan.n_strange, plan.dropped) == (1, 1, 1, [])


def test_errors_are_tried_again_when_asked_and_taken_out_when_their_job_is_gone() -> None:
    rows = [done("a", 0, is_error=True), done("gone", 1, is_error=True), done("b", 2)]
    assert make_plan([task("a"), task("b")], rows).dropped == [rows[1]]
    plan = make_plan([task("a"), task("b")], rows, retries=True)
    assert plan.dropped == rows[:2]
    assert keys(plan) == [["a"]]


def test_equal_tasks_are_computed_once() -> None:
    tasks = [task("a", "same"), task("b", "same"), task("c", "same"), task("d")]
    plan = make_plan(tasks, [])
    assert keys(plan) == [["a", "d"]]
    assert [one.key for one in plan.copies["same"]] == ["b", "c"]
    later = make_plan(tasks, [done("b", 5)])
    assert [(one.key, row.start) for one, row in later.copied] == [("a", 5), ("c", 5)]
    assert keys(later) == [["d"]]


def test_a_key_that_stands_twice_needs_two_rows() -> None:
    plan = make_plan([task("a"), task("a")], [done("a")])
    assert (plan.n_answered, len(plan.copied)) == (1, 1)
    assert make_plan([task("a"), task("a")], [done("a"), done("a", 1)]).n_open == 0


def test_what_is_known_to_fail_is_not_given_out() -> None:
    plan = make_plan([task("a", problem=True), task("b")], [])
    assert [one.key for one in plan.failed] == ["a"]
    assert keys(plan) == [["b"]]


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("abcde"), st.sampled_from("xy"))),
    st.lists(st.tuples(st.sampled_from("abcdefg"), st.booleans())),
    st.booleans(),
)
def test_counts_add_up(named: list[tuple[str, str]], rows: list[tuple[str, bool]], retries: bool) -> None:
    tasks = [task(key, place=place) for key, place in named]
    there = [done(key, n, is_error=is_error) for n, (key, is_error) in enumerate(rows)]
    plan = make_plan(tasks, there, retries=retries)
    assert plan.n_answered + plan.n_failed + plan.n_open == len(tasks)
    assert len(plan.dropped) + plan.n_answered + plan.n_failed + plan.n_strange == len(there)
    computed = [one.content for group in plan.groups for one in group]
    assert max(Counter(computed).values(), default=1) == 1
    assert not any(row.is_error for row in there if row in plan.dropped) or all(
        r.is_error for r in plan.dropped
    )


# --- keys --------------------------------------------------------------------------------------------


def test_the_key_changes_with_id_question_name_and_content_and_not_with_the_line(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"

    def key(
        line: int = 1, name: str = "x.txt", identifier: str = "a", text: str = "one", **more: object
    ) -> str:
        path.write_text(text)
        job = Job(line, identifier, (name,), "Why?", **more)  # type: ignore[arg-type]  # spread over fields
        return next(tasks_of([job], Corpus(str(tmp_path)))).key

    same = key()
    assert key(line=9) == same
    assert same not in {key(text="two"), key(identifier="b"), key(max_tokens=3), key(schema="{}")}
    (tmp_path / "y.txt").write_text("one")
    assert key(name="y.txt") != same


def test_a_file_that_comes_back_is_another_key(tmp_path: Path) -> None:
    job = Job(1, "a", ("x.txt",), "Why?")
    (lost,) = tasks_of([job], Corpus(str(tmp_path)))
    assert lost.problem is not None
    assert "no such file" in lost.problem[1]
    (tmp_path / "x.txt").write_text("here")
    (there,) = tasks_of([job], Corpus(str(tmp_path)))
    assert (there.problem, there.key == lost.key) == (None, False)


def test_a_row_without_documents_is_a_task_for_each_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("here")
    corpus = Corpus(
        str(tmp_path), (Found("x.txt", str(tmp_path / "x.txt")), Found("bad", "bad", "is damaged"))
    )
    rows = [Job(1, "q", (), "Why?"), Job(2, None, (), "Who?"), BadRow(3, 5, "no JSON", "d")]
    tasks = list(tasks_of(rows, corpus))
    assert [one.id for one in tasks] == ["q:x.txt", "q:bad", "x.txt", "bad", 5]
    assert [one.problem is None for one in tasks] == [True, False, True, False, False]
    assert tasks[0].place == tasks[2].place
    assert Task.from_json(tasks[1].to_json()) == tasks[1]


# --- workers that die --------------------------------------------------------------------------------


def test_what_a_dead_worker_left_is_given_out_again_one_by_one() -> None:
    dispatch = Dispatch([[task("a"), task("b"), task("c")]])
    assert dispatch.give(1) is not None
    assert dispatch.task_done(1, "a") is not None
    assert dispatch.died(1) == []
    assert [dispatch.give(worker) for worker in (2, 3, 4)] == [[task("b")], [task("c")], None]
    assert dispatch.task_done(1, "b") is None  # what the dead one says late counts no more
    for worker, key in ((2, "b"), (3, "c")):
        assert not dispatch.is_over
        assert dispatch.task_done(worker, key) is not None
    assert dispatch.is_over


def test_a_task_that_kills_every_worker_is_given_up() -> None:
    dispatch = Dispatch([[task("a"), task("b")]])
    dispatch.give(0)
    assert dispatch.died(0) == []
    for worker in range(1, MAX_DEATHS):
        assert dispatch.give(worker) == [task("a")]
        assert dispatch.died(worker) == []
    dispatch.give(9)
    assert dispatch.died(9) == [task("a")]
    assert dispatch.give(10) == [task("b")]


def test_a_worker_takes_what_is_at_home_with_it_first() -> None:
    dispatch = Dispatch(
        [[task("a")], [task("b")], [task("c")]], home=lambda one: "two" if one.key != "a" else "one"
    )
    assert dispatch.give(1, "two") == [task("b")]
    assert dispatch.give(2, "one") == [task("a")]
    assert dispatch.give(3, "one") == [task("c")]
