# SPDX-License-Identifier: Apache-2.0
"""site.py OUTPUT [MANUAL.html...]: the pages of docs as a site, beside the API reference that Doxygen has put into
OUTPUT/api. Run at the top of the tree. Every page has its place below, and every link leads somewhere."""
import html
import os
import posixpath
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import convert  # noqa: E402

GROUPS = [
    ('First steps', ['README.md', 'docs/tutorial-cpu.md', 'docs/tutorial-gpu.md', 'docs/reading-the-report.md']),
    ('Guide', ['docs/concepts.md', 'docs/cpp.md', 'docs/fortran.md', 'docs/python.md',
               'docs/cg.md', 'docs/cholesky.md', 'docs/sparse-cholesky.md', 'docs/beside-openmp-and-mpi.md',
               'docs/cublas.md', 'docs/cusparse.md', 'docs/blas.md', 'docs/migrating.md']),
    ('Inside', ['docs/joining.md', 'docs/architecture.md', 'docs/rooms/*.md', 'docs/specification.md', 'docs/extending.md',
                'docs/testing.md', 'docs/performance.md']),
    ('Project', ['docs/changelog.md', 'docs/names.md', 'docs/security.md']),
]


def pages_of(pattern):
    folder, name = posixpath.split(pattern)
    return sorted(posixpath.join(folder, each) for each in os.listdir(folder or '.')
                  if name == each or name == '*.md' and each.endswith('.md'))


def url_of(page):
    return 'index.html' if page == 'README.md' else page[len('docs/'):-len('.md')] + '.html'


def manual_name(file):
    """As the manual pages name each other: filch(7)."""
    return re.sub(r'\.(\d)\.html$', r'(\1)', os.path.basename(file))


class Site:
    def __init__(self, output, manuals):
        self.output, self.manuals = output, manuals
        self.groups = [(title, [page for pattern in patterns for page in pages_of(pattern)])
                       for title, patterns in GROUPS]
        self.pages = {page: None for _, pages in self.groups for page in pages}
        self.problems, self.sources = [], set()
        for page in pages_of('docs/*.md') + pages_of('docs/rooms/*.md'):
            if page not in self.pages:
                self.problems.append('%s has no place in docs/site/site.py' % page)

    def resolve(self, page, target):
        """From a link of a page to a URL relative to the page's own."""
        if re.match(r'[a-z]+:', target):
            return target
        path, _, anchor = target.partition('#')
        file = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
        header = re.fullmatch(r'include/filch/(?:cpp/)?(\w+)\.(hp?p?)', file)
        if file in self.pages:
            url = url_of(file)
        elif header:
            url = 'api/%s_8%s.html' % (header[1].replace('_', '__'), header[2])
        elif file == 'include/filch':
            url = 'api/files.html'
        elif os.path.exists(file) and not file.startswith('..'):
            self.sources.add(file)
            url = 'source/%s.html' % file
        else:
            self.problems.append('%s: no such file: %s' % (page, target))
            return '#'
        url = posixpath.relpath(url, posixpath.dirname(self.place(page)) or '.')
        return url + ('#' + anchor if anchor else '')

    def place(self, page):
        return url_of(page) if page in self.pages else 'source/%s.html' % page

    def image(self, page, target):
        file = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
        os.makedirs(os.path.join(self.output, 'images'), exist_ok=True)
        shutil.copy(file, os.path.join(self.output, 'images'))
        return posixpath.relpath('images/' + posixpath.basename(file), posixpath.dirname(url_of(page)) or '.')

    def convert(self):
        for page in self.pages:
            with open(page, encoding='utf-8') as file:
                text = file.read()
            try:
                self.pages[page] = convert.Page(text, lambda target, p=page: self.resolve(p, target),
                                                lambda target, p=page: self.image(p, target))
            except convert.Problem as problem:
                self.problems.append('%s: %s' % (page, problem))

    def navigation(self, place):
        up = posixpath.relpath('.', posixpath.dirname(place) or '.')
        entry = lambda url, title: '<li%s><a href="%s">%s</a></li>' % (
            ' class="here"' if url == place else '', posixpath.normpath(posixpath.join(up, url)), title)
        parts = []
        for title, pages in self.groups:
            parts.append('<h2>%s</h2><ul>%s</ul>' % (title, ''.join(
                entry(url_of(page), html.escape(self.pages[page].title)) for page in pages)))
        reference = [('api/files.html', 'C and C++, by header')]
        reference += [('man/' + os.path.basename(each), manual_name(each)) for each in self.manuals]
        parts.insert(2, '<h2>Reference</h2><ul>%s</ul>' % ''.join(entry(url, title) for url, title in reference))
        return '\n'.join(parts)

    def write(self, place, title, body, contents=''):
        path = os.path.join(self.output, place)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        style = posixpath.relpath('style.css', posixpath.dirname(place) or '.')
        with open(path, 'w', encoding='utf-8') as file:
            file.write('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
                       '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
                       '<title>%s – filch</title><link rel="stylesheet" href="%s"></head>\n'
                       '<body><nav>%s</nav>\n<main>%s%s</main></body></html>\n' % (
                           html.escape(title), style, self.navigation(place), contents, body))

    def write_pages(self):
        for name, page in self.pages.items():
            heads = [(anchor, text) for anchor, (level, text) in page.anchors.items() if level == 2]
            contents = '<details class="contents"%s><summary>On this page</summary><ul>%s</ul></details>\n' % (
                '' if len(heads) > 12 else ' open', ''.join(
                    '<li><a href="#%s">%s</a></li>' % (anchor, re.sub(r'</?a[^>]*>', '', text))
                    for anchor, text in heads)) if len(heads) > 2 else ''
            first, rest = page.html.split('</h1>', 1)
            self.write(url_of(name), page.title, first + '</h1>\n' + contents + rest)

    def write_sources(self):
        """Files that pages link to; a folder becomes a list of its files."""
        done = set()
        while self.sources - done:
            file = min(self.sources - done)
            done.add(file)
            place = 'source/%s.html' % file
            if os.path.isdir(file):
                names = [posixpath.join(file, each) for each in sorted(os.listdir(file)) if not each.startswith('.')]
                links = [(self.resolve(file, posixpath.relpath(each, posixpath.dirname(file) or '.')),
                          posixpath.basename(each)) for each in names if os.path.isfile(each)]
                body = '<ul>%s</ul>' % ''.join('<li><a href="%s">%s</a></li>' % link for link in links)
            else:
                with open(file, encoding='utf-8') as source:
                    body = '<pre><code>%s</code></pre>' % html.escape(source.read(), False)
            self.write(place, file, '<h1>%s</h1>%s' % (html.escape(file), body))

    def write_manuals(self):
        for each in self.manuals:
            with open(each, encoding='utf-8') as file:
                self.write('man/' + os.path.basename(each), manual_name(each), file.read())

    def check(self):
        """Every link of every page leads to a file, and to an anchor of it."""
        ids = {}
        for folder, _, names in os.walk(self.output):
            for name in names:
                if name.endswith('.html'):
                    path = os.path.join(folder, name)
                    with open(path, encoding='utf-8') as file:
                        ids[os.path.relpath(path, self.output)] = file.read()
        count = 0
        for place, text in sorted(ids.items()):
            if place.startswith('api/'):
                continue
            for target in re.findall(r'(?:href|src)="([^"]*)"', text):
                if re.match(r'[a-z]+:', target):
                    continue
                count += 1
                path, _, anchor = html.unescape(target).partition('#')
                to = posixpath.normpath(posixpath.join(posixpath.dirname(place), path)) if path else place
                if not os.path.exists(os.path.join(self.output, to)):
                    self.problems.append('%s: no such page: %s' % (place, target))
                elif anchor and not re.search(r'id="%s"' % re.escape(anchor), ids[to]):
                    self.problems.append('%s: no such heading: %s' % (place, target))
        return count


def main():
    output, manuals = sys.argv[1], sys.argv[2:]
    site = Site(output, manuals)
    site.convert()
    if not site.problems:
        shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'style.css'), output)
        site.write_pages()
        site.write_sources()
        site.write_manuals()
        count = site.check()
        print('site: %d pages, %d links lead somewhere' % (len(site.pages), count))
    for problem in site.problems:
        print(problem, file=sys.stderr)
    sys.exit(1 if site.problems else 0)


main()
