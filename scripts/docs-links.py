"""A hook of MkDocs: adds the README files of the SDKs and native libraries as pages, and replaces a link to any other file
outside docs/ by its text and the path of that file in the repository."""

import os
import re

from mkdocs.structure.files import File

# README files that are pages of the site, by their path in the repository.
LIBRARIES = {
    "sdk/README.md": "libraries/sdk.md",
    "sdk/tower/README.md": "libraries/rust.md",
    "sdk/python/README.md": "libraries/python.md",
    "sdk/go/README.md": "libraries/go.md",
    "sdk/node/README.md": "libraries/node.md",
    "native/sert/README.md": "libraries/libsert.md",
    "native/sentry/README.md": "libraries/libbywash-sentry.md",
    "native/levels/README.md": "libraries/levels.md",
}
SOURCES = {page: source for source, page in LIBRARIES.items()}
LINK = re.compile(r"\[([^\]]*)\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)")
FENCED = re.compile(r"(^```.*?^```)", re.M | re.S)


def on_files(files, config):
    """Adds the README files."""
    root = os.path.dirname(config.docs_dir)
    for source, page in LIBRARIES.items():
        files.append(File.generated(config, page, abs_src_path=os.path.join(root, source)))
    return files


def on_page_markdown(markdown, page, **_):
    """Rewrites those links of a page that leave docs/."""
    uri = page.file.src_uri
    folder = os.path.dirname(SOURCES.get(uri, f"docs/{uri}"))

    def rewritten(link):
        text, anchor = link[1], link[3] or ""
        path = os.path.normpath(os.path.join(folder, link[2]))
        target = LIBRARIES.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else None)
        if target:
            return f"[{text}]({os.path.relpath(target, os.path.dirname(uri))}{anchor})"
        return f"`{path}`" if text.strip("`") == path else f"{text} (`{path}` in the repository)"

    parts = FENCED.split(markdown)
    return "".join(part if number % 2 else LINK.sub(rewritten, part) for number, part in enumerate(parts))
