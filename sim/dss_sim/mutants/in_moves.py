"""Mistakes about cursors that operators move: `leader/cursor_moves`, `leader/instructions`."""

from dss_sim.mutants.planting import Mutant

IN_MOVES = (
    Mutant(
        "moved without a fence",
        "what holders of before a move still report counts after it",
        "cursor_moves._fence",
        """
        state.grant_epoch += 1
        state.grant_unsaved = True
        """,
        "state.grant_unsaved = True",
    ),
    Mutant(
        "moved under the holder",
        "a cursor moves while its holder still hands out (Kafka makes its users stop consumers)",
        "leader.stream._ask_move_held",
        "return _revoke(state, RevokeDecided(event.heir))",
        "return _end(state)",
    ),
    Mutant(
        "moved while it is kept",
        "a cursor moves while the holder of the leader before may still hand out",
        "leader.stream._ask_move_free",
        "not _take_move(state, event) or state.reserved",
        "not _take_move(state, event)",
    ),
    Mutant(
        "reopened unmarked",
        "records that were seen before a rewind come again as new",
        "cursor_moves.make_move",
        "max(state.suspect_end, _handed_out_below(state))",
        "state.suspect_end",
    ),
    Mutant(
        "attempts of before a rewind",
        "records that come again after a rewind begin with the attempts of before",
        "cursor_moves.make_move",
        "state.attempts = _kept(state.attempts, known_below, after)",
        "state.attempts = _kept(state.attempts, OFFSET_MAX, after)",
    ),
    Mutant(
        "known records forgotten by hand",
        "a record that is skipped by hand takes along what is known of those behind it",
        "cursor_moves._first_reopened",
        "OFFSET_MAX",
        "before.floor",
    ),
    Mutant(
        "moved again",
        "an instruction that comes twice moves the cursor twice",
        "leader.stream._take_move",
        "event.move.number <= state.cursor_generation or state.move is not None",
        "state.move is not None",
    ),
    Mutant(
        "done before it is durable",
        "an operation is called done while its move is in no commit, or in one under way",
        "instructions._is_moving",
        "return waits or unsaved or any(each.moved_by == number for each in committing)",
        "return waits",
    ),
    Mutant(
        "pending moves not read",
        "what a leader before had not moved is moved by none",
        "leader.machine._take_over",
        "take_pending_moves(turn, given.moves)",
        "",
    ),
    Mutant(
        "marks not kept",
        "after a takeover, what was seen before a rewind comes again unmarked",
        "leaders.takeover._progress_row",
        "record.marked_below",
        "0",
    ),
)
