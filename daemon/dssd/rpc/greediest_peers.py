"""The use of shared limits by peer, so that an operator can find the greediest ones.

A peer with a token or a certificate is named by its principal, wherever it connects from. For other
calls the process is looked up now in the kernel's list of connected processes: when the call began,
the process may not have been listed yet.
"""

from collections import defaultdict

from dssd.loop_yield import LoopTurn
from dssd.questions.daemon_facts import PeerHeld
from dssd.rpc.calls import Calls
from dssd.rpc.connection_bounds import Connections, Peer
from dssd.rpc.sessions import SessionsServicer

PEERS_SHOWN_MAX = 5
"""Peers in the daemon's status, those that hold most."""


async def greediest(
    connections: Connections, calls: Calls, sessions: SessionsServicer
) -> tuple[PeerHeld, ...]:
    """The peers that hold most, by bytes, then by connections and calls."""
    turn = LoopTurn()
    found: defaultdict[Peer, PeerHeld] = defaultdict(lambda: PeerHeld(""))
    for peer, count in connections.held.items():
        found[peer].connections = count
    for call in calls.open_calls():
        await turn.give_way()
        found[call.peer if call.login.key else calls.peer_of(call.context)].calls += 1
    for context, session in sessions.attached():
        await turn.give_way()
        held = found[session.account.owner or calls.peer_of(context)]
        held.sessions += 1
        held.delivery_bytes += session.account.held_bytes
    for peer, held in found.items():
        held.peer = str(peer)
    ranked = sorted(found.values(), key=_greed, reverse=True)
    return tuple(ranked[:PEERS_SHOWN_MAX])


def _greed(held: PeerHeld) -> tuple[int, int, str]:
    return held.delivery_bytes, held.connections + held.calls, held.peer
