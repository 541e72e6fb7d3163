"""The use of shared limits by peer, so that an operator can find the greediest ones.

A peer with a token or a certificate is named by its principal, wherever it connects from. For other
calls the process is looked up now in the kernel's list of connected processes: when the call began,
the process may not have been listed yet.
"""

from collections import Counter

from dss_core.answers import PeerHeld
from dssd.loop_yield import LoopTurn
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
    called: Counter[Peer] = Counter()
    for call in calls.open_calls():
        await turn.give_way()
        called[call.peer if call.login.key else calls.peer_of(call.context)] += 1
    attached: Counter[Peer] = Counter()
    held_bytes: Counter[Peer] = Counter()
    for context, session in sessions.attached():
        await turn.give_way()
        peer = session.account.owner or calls.peer_of(context)
        attached[peer] += 1
        held_bytes[peer] += session.account.held_bytes
    connected = connections.held
    found = [
        PeerHeld(str(peer), connected.get(peer, 0), called[peer], attached[peer], held_bytes[peer])
        for peer in {*connected, *called, *attached}
    ]
    return tuple(sorted(found, key=_greed, reverse=True)[:PEERS_SHOWN_MAX])


def _greed(held: PeerHeld) -> tuple[int, int, str]:
    return held.delivery_bytes, held.connections + held.calls, held.peer
