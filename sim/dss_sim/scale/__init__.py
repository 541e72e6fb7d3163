"""Scale on paper: ``python -m dss_sim.scale``, or ``make scale``.

`world` is one large world, `life` what happens to it and what is counted, `step_costs` measures
single steps of leaders, and `report` prints both as Markdown tables. Safety is judged by the
`Checker` at each event as always; looks into machines are sampled, because at this size they would
cost more than the machines. Invariant: except for CPU times, a seed gives the same figures each
time.
"""
