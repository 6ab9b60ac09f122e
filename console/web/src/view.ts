// The views, and the addresses within them: `#/elephants/3?tab=…`. Everything that selects what a
// page shows is in the fragment, so that a link shows the same to another person.

export const VIEWS = ['now', 'classes', 'why', 'elephants', 'saved', 'sessions', 'policy', 'fleet', 'lab'] as const;
export type View = (typeof VIEWS)[number];

export interface Place {
    view: View;
    /** The selected item of the view; undefined if none is selected. */
    of: string | undefined;
    query: Readonly<Record<string, string>>;
}

export function readPlace(hash: string): Place {
    const [path = '', search = ''] = hash.replace(/^#\/?/, '').split('?', 2);
    const [name = '', ...rest] = path.split('/');
    const view = VIEWS.find(view => view === name) ?? 'now';
    const of = rest.length > 0 && rest[0] !== '' ? unescaped(rest.join('/')) : undefined;
    return { view, of, query: Object.fromEntries(new URLSearchParams(search)) };
}

export function href(view: View, of?: string | number, query: Record<string, string | undefined> = {}): string {
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) if (value) search.set(name, value);
    const text = search.toString();
    return `#/${view}${of === undefined ? '' : `/${encodeURIComponent(of)}`}${text ? `?${text}` : ''}`;
}

function unescaped(text: string): string {
    try {
        return decodeURIComponent(text);
    } catch {
        return text;
    }
}
