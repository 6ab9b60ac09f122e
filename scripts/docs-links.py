"""A hook of MkDocs: replaces a link out of docs/ by the path of that file in the repository."""

import os
import re

LINK = re.compile(r"\[([^\]]*)\]\((\.\./[^)#\s]+)(#[^)\s]*)?\)")


def on_page_markdown(markdown, page, config, **_):
    """Replaces links to files outside the pages' folder by their text and path."""
    folder = os.path.dirname(page.file.src_uri)

    def outside(link):
        text, target = link[1], os.path.normpath(os.path.join(folder, link[2]))
        if not target.startswith(".."):
            return link[0]
        path = target.removeprefix("../")
        return f"`{path}`" if text.strip("`") == path else f"{text} (`{path}` in the repository)"

    return LINK.sub(outside, markdown)
