# SPDX-License-Identifier: Apache-2.0
"""Markdown to HTML, as far as the pages of docs need it: headings, paragraphs, lists of one level, tables, blocks of
code, and in a line code, emphasis, links and images. What is not understood is an error with the line's number."""
import html
import re


class Problem(Exception):
    """A page that cannot be converted; the text names the line."""


def slug(heading):
    """The anchor of a heading, as forges make it."""
    text = re.sub(r'\[([^]]*)\]\([^)]*\)', r'\1', heading)
    return re.sub(r'[^\w\- ]', '', text.lower()).replace(' ', '-')


def inline(text, link, image):
    """A line's HTML. link and image: from a target as written to a URL."""
    kept = []

    def keep(made):
        kept.append(made)
        return '\0%d\0' % (len(kept) - 1)

    text = re.sub(r'(`+)(.+?)\1(?!`)', lambda m: keep('<code>%s</code>' % html.escape(m[2].strip(), False)), text)
    text = re.sub(r'\\([\\`*_|\[\]<>#])', lambda m: keep(html.escape(m[1], False)), text)
    text = html.escape(text, False)
    text = re.sub(r'!\[([^]]*)\]\(([^) ]+)\)', lambda m: keep('<img src="%s" alt="%s">' % (
        html.escape(image(m[2])), m[1].replace('"', '&quot;'))), text)
    text = re.sub(r'\[([^]]*)\]\(([^) ]+)\)', lambda m: '%s%s%s' % (
        keep('<a href="%s">' % html.escape(link(html.unescape(m[2])))), m[1], keep('</a>')), text)
    text = re.sub(r'\*\*(\S(?:.*?\S)?)\*\*', r'<strong>\1</strong>', text)
    text = re.sub(r'(?<![\w*])\*(\S(?:.*?\S)?)\*(?![\w*])', r'<em>\1</em>', text)
    while '\0' in text:
        text = re.sub('\0(\\d+)\0', lambda m: kept[int(m[1])], text)
    return text


def cells(row):
    """The cells of a table's row."""
    row = re.sub(r'`[^`]*`', lambda m: m[0].replace('\\|', '\1').replace('|', '\1'), row.strip())
    row = row.replace('\\|', '\1')
    row = re.sub(r'^\||\|$', '', row)
    return [each.strip().replace('\1', '|') for each in row.split('|')]


class Page:
    """A page: its title, its anchors with their headings, and its HTML."""

    def __init__(self, text, link, image):
        self.title, self.anchors, self.parts = None, {}, []
        self.lines, self.at = text.split('\n'), 0
        self.span = lambda line: inline(line, link, image)
        while self.at < len(self.lines):
            self.block()
        if self.title is None:
            raise Problem('no heading of the first level')
        self.html = '\n'.join(self.parts) + '\n'

    def block(self):
        line = self.lines[self.at]
        following = self.lines[self.at + 1] if self.at + 1 < len(self.lines) else ''
        if not line.strip():
            self.at += 1
        elif line.startswith('```'):
            self.code()
        elif re.match(r'#{1,4} ', line):
            self.heading(line)
        elif '|' in line and re.match(r'\|?[ :-]*-{3}[ :|-]*$', following):
            self.table()
        elif re.match(r'(- |\d+\. )', line):
            self.list()
        elif re.match(r'(    |>|\+ |\* |<|===|---)', line):
            raise Problem('line %d: not understood: %s' % (self.at + 1, line))
        else:
            self.parts.append('<p>%s</p>' % self.span('\n'.join(self.take(
                lambda each: each.strip() and not re.match(r'```|#|- |\d+\. ', each)))))

    def take(self, belongs):
        """The lines from here on that belong together; the first one always does."""
        first = self.at
        self.at += 1
        while self.at < len(self.lines) and belongs(self.lines[self.at]):
            self.at += 1
        return self.lines[first:self.at]

    def code(self):
        language = self.lines[self.at][3:].strip()
        body = self.take(lambda each: not each.startswith('```'))[1:]
        if self.at == len(self.lines):
            raise Problem('line %d: the block of code does not end' % (self.at - len(body)))
        self.at += 1
        self.parts.append('<pre class="%s"><code>%s\n</code></pre>' % (
            html.escape(language or 'plain'), html.escape('\n'.join(body), False)))

    def heading(self, line):
        level, text = re.match(r'(#+) (.*)', line).groups()
        anchor = slug(text)
        count = sum(1 for each in self.anchors if re.fullmatch(re.escape(anchor) + r'(-\d+)?', each))
        anchor += '-%d' % count if anchor in self.anchors else ''
        self.anchors[anchor] = (len(level), self.span(text))
        if len(level) == 1 and self.title is None:
            self.title = re.sub(r'[`*]', '', text)
        self.parts.append('<h%d id="%s">%s</h%d>' % (len(level), anchor, self.span(text), len(level)))
        self.at += 1

    def table(self):
        head, _, *rows = [cells(each) for each in self.take(lambda each: '|' in each)]
        if any(len(row) != len(head) for row in rows):
            raise Problem('before line %d: a row of the table has not %d cells' % (self.at + 1, len(head)))
        line = lambda tag, row: '<tr>%s</tr>' % ''.join('<%s>%s</%s>' % (tag, self.span(each), tag) for each in row)
        self.parts.append('<div class="wide"><table>\n<thead>%s</thead>\n<tbody>\n%s\n</tbody></table></div>' % (
            line('th', head), '\n'.join(line('td', row) for row in rows)))

    def list(self):
        kind = 'ul' if self.lines[self.at].startswith('- ') else 'ol'
        mark = r'- ' if kind == 'ul' else r'\d+\. '
        items = []
        while self.at < len(self.lines) and re.match(mark, self.lines[self.at]):
            lines = self.take(lambda each: each.strip() and not re.match(r'- |\d+\. |```|#', each))
            items.append(self.span('\n'.join([re.sub('^' + mark, '', lines[0])] + [each.strip() for each in lines[1:]])))
            if self.at + 1 < len(self.lines) and not self.lines[self.at].strip() and \
                    re.match(mark, self.lines[self.at + 1]):
                self.at += 1
        self.parts.append('<%s>\n%s\n</%s>' % (kind, '\n'.join('<li>%s</li>' % each for each in items), kind))
