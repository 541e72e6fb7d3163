"""Paragraphs on DSS12xx and DSS22xx: what the JetStream facade of the client refuses."""

JETSTREAM = {
    "DSS1201": """A program calls the JetStream facade of the client with arguments that no
        consumer can have together: a queue with heartbeats, a pull consumer with a deliver subject,
        a name with a dot. The call was refused before anything was asked or made; the sentence says
        which rule it breaks.""",
    "DSS1202": """JetStream offers it, and a log of several streams shared by groups cannot keep the
        promise: the last message of all streams, one order or one sequence number over them, a
        rate, replicas. The facade refuses it when it is asked for rather than do something near it.
        A topic of one partition has one order and one sequence, and allows more.""",
    "DSS1203": """The reply subject of a message says where it came from, and this one has another
        number of tokens, another beginning, or a word where a number stands. It comes from another
        system, or was cut.""",
    "DSS2201": """No stream was named, so it was looked for by the subject, and not exactly one
        topic has a pattern that the subject meets. None was guessed. Name the stream.""",
    "DSS2202": """A consumer was named, to be used as it is, and no group of that name reads the
        stream. A push subscription that names a consumer never makes one.""",
    "DSS2203": """A consumer reads one subject for ever. The subject that was given is compared as
        it is written: a narrower one does not fit either.""",
    "DSS2204": """What a consumer is, push or pull, is settled when it is made, and kept in the
        metadata of its group. This one was made to be subscribed to.""",
    "DSS2205": """What a consumer is, push or pull, is settled when it is made, and kept in the
        metadata of its group. This one was made to be pulled from.""",
    "DSS2206": """The consumer was made for one subscription, and a queue wants to share it. Its
        owner would lose messages to the others without having asked for that.""",
    "DSS2207": """The consumer was made for one subscription, and has one: this program holds it
        already, or another one does. Who leaves or dies lets go of it at once, or after its lease.
        Two who came at the same moment were told apart by the leader of the group: the first has
        it.""",
    "DSS2208": """The consumer was made for a queue, and a subscription without one wants all that
        it brings. It would get a part only.""",
    "DSS2209": """The consumer was made for a queue of another name. Members of two queues would
        share its messages without knowing of each other.""",
    "DSS2210": """The consumer exists with flow control, and a queue wants to share it. In JetStream
        the requests would go to any of the members; the facade keeps that rule.""",
    "DSS2211": """The consumer exists with heartbeats, and a queue wants to share it. In JetStream
        they would go to any of the members; the facade keeps that rule.""",
    "DSS2212": """A field that the program set differs from what the consumer has. Nothing was
        changed and nothing was overwritten: the sentence lists each field with both values. Fields
        that the program leaves out are never compared.""",
    "DSS2213": """The program uses a subscription that it has unsubscribed or drained, or whose
        client is closed. What had come was handed out before, where it was drained.""",
    "DSS2214": """Only the first of ack, nak and term counts for a message; later ones are ignored.
        This program asked for an error instead, with strict_acks.""",
    "DSS2215": """The consumer has heartbeats, and for three intervals neither a message nor
        anything else came from the daemon. The alarm is told to the error callback and repeats; the
        client reconnects by itself, and nothing is lost.""",
}
