# SPDX-License-Identifier: Apache-2.0
"""What docs/site/convert.py makes of small pages. Run at the top of the tree."""
import sys

sys.path.insert(0, 'docs/site')
import convert  # noqa: E402


def made(text):
    """The HTML below a title; links and images are marked."""
    page = convert.Page('# T\n\n' + text, lambda target: 'to:' + target, lambda target: 'at:' + target)
    return page.html.split('</h1>\n', 1)[1].strip()


CASES = [
    ('one\ntwo', '<p>one\ntwo</p>'),
    ('a < b & c', '<p>a &lt; b &amp; c</p>'),
    ('**b** and *e*, 2 * 3 * 4', '<p><strong>b</strong> and <em>e</em>, 2 * 3 * 4</p>'),
    ('`a*b*c` `<x>`', '<p><code>a*b*c</code> <code>&lt;x&gt;</code></p>'),
    ('[a `b`](c.md#d)', '<p><a href="to:c.md#d">a <code>b</code></a></p>'),
    ('![it](x.png)', '<p><img src="at:x.png" alt="it"></p>'),
    ('`[](Text)`', '<p><code>[](Text)</code></p>'),
    ('- a\n  b\n- c', '<ul>\n<li>a\nb</li>\n<li>c</li>\n</ul>'),
    ('1. a\n2. b', '<ol>\n<li>a</li>\n<li>b</li>\n</ol>'),
    ('x:\n- a', '<p>x:</p>\n<ul>\n<li>a</li>\n</ul>'),
    ('```c\na < b;\n\n# c\n```', '<pre class="c"><code>a &lt; b;\n\n# c\n</code></pre>'),
    ('| a | b |\n| --- | --- |\n| `x \\| y` | |', '<div class="wide"><table>\n<thead><tr><th>a</th><th>b</th></tr></thead>\n'
     '<tbody>\n<tr><td><code>x | y</code></td><td></td></tr>\n</tbody></table></div>'),
    ('a | b\n--- | ---\nc | d', '<div class="wide"><table>\n<thead><tr><th>a</th><th>b</th></tr></thead>\n'
     '<tbody>\n<tr><td>c</td><td>d</td></tr>\n</tbody></table></div>'),
    ('## A `b`: c, d\n\n## A `b`: c, d', '<h2 id="a-b-c-d">A <code>b</code>: c, d</h2>\n'
     '<h2 id="a-b-c-d-1">A <code>b</code>: c, d</h2>'),
]
REFUSED = ['> quoted', '```\nno end', '| a | b |\n| --- | --- |\n| one |', '    indented', '<b>raw</b>']

for text, wanted in CASES:
    if made(text) != wanted:
        sys.exit('of %r came\n%s\nin place of\n%s' % (text, made(text), wanted))
for text in REFUSED:
    try:
        sys.exit('%r was not refused, but gave %s' % (text, made(text)))
    except convert.Problem:
        pass
print('convert: %d cases' % (len(CASES) + len(REFUSED)))
