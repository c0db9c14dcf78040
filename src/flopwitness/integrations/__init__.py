"""How does it plug into my training? What runs inside PyTorch, and how many operations it was.

    from flopwitness.integrations.operation_counter import OperationCounter

    with OperationCounter(model) as counter:            # any call, or a whole training step
        model(batch).sum().backward()
        optimizer.step()
    count = counter.count()                             # an OperationCount
    count.model_flop, count.executed_flop               # without and with recomputation
    count.by_operator, count.by_module                  # rows that add up to the total
    count.is_complete, count.completeness               # False, < 1: not to be called ground truth
    count.uncounted                                     # every other operator seen, with its volume

    from flopwitness.integrations.run_counter import RunCounter

    run = RunCounter(model)                             # a long run: count a step of each kind, multiply
    for batch in batches:
        with run.step(batch):
            train_one_step(batch)
    run.count()                                         # a RunCount: total, bounds, how it was counted

| module | holds |
|---|---|
| `operation_counter` | the counter, a context manager |
| `operation_count` | what it returns: plain records that know no PyTorch |
| `run_counter`, `run_count` | the same for a run of many steps |
| `module_table` | the total of a table that another counter printed |
| `formulas` | how many operations each operator is, from its arguments |
| `known_operators` | the operators known to do no products |

Importing this package loads no PyTorch; without it, a counter says in one line what to install. A
multiply-add is two operations. What is counted how: docs/explanation/counted_operators.md.
"""

__all__: list[str] = []
