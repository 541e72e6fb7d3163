"""Scale on paper: ``python -m dss_sim.scale``, or ``make scale``.

`world` is one large world, `life` what it lives through and what is counted, `step_costs` measures
single steps of leaders, `report` says both as Markdown tables. Safety is judged by the `Checker` at
each event as ever; looks into machines are sampled, for at this size they would cost more than the
machines. Invariant: but for CPU times, a seed gives the same figures each time.
"""
