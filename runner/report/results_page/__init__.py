"""results.html: one module per plot, table or section.

In: Results, Receipt and the decision. Out: if each mark stands and what each cell of a table says; `render` puts
them into the templates, whose version it names.
It must not compute a statistic, read a clock or fetch anything: the page is a pure function of its input.
"""
