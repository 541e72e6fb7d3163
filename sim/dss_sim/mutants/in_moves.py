"""Mistakes about cursors that operators move: `leader/cursor_moves`, `leader/instructions`."""

from dss_sim.mutants.planting import Mutant

IN_MOVES = (
    Mutant(
        "moved without a fence",
        "what earlier holders report counts even after a cursor has moved",
        "cursor_moves.fence",
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
        "return end(state)",
    ),
    Mutant(
        "reopened unmarked",
        "records that were seen before a rewind come again as new",
        "cursor_moves.make_move",
        "max(state.suspect_end, _handed_out_below(state))",
        "state.suspect_end",
    ),
    Mutant(
        "done before it is durable",
        "an operation is reported done before the commit of its move is durable",
        "instructions._is_moving",
        "return waits or unsaved or any(each.moved_by == number for each in committing)",
        "return waits",
    ),
    Mutant(
        "pending moves not read",
        "moves that an earlier leader had not made are never made",
        "leader.machine._take_over",
        "take_pending_moves(turn, given.moves)",
        "",
    ),
)
