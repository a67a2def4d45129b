"""Between the vision floor's types and the protos of `hair.analysis.v1`.

One module per call: `options` reads and checks its parameters, what follows makes its answer.
"""
