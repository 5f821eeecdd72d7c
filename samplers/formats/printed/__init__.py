"""GPO's fixed-width pages: hearings, the Congressional Record, committee reports.

In: the `<pre>` of a saved page. Out: lines with their layout, and lines joined to paragraphs.
It must not know which of these it reads, nor who speaks.
"""
