// The panel with the JSON behind a page: the documents of the API that the page shows, to read,
// copy or download. A plain link could not download them, because it would carry no token.
import { useEffect, useState } from 'preact/hooks';
import { ask } from './client';
import { Dialog } from './dialog';
import { visibleLines } from './visible';

export function JsonButton({ paths }: { paths: readonly string[] }) {
    const [isOpen, setOpen] = useState(false);
    return (
        <>
            <button
                type="button"
                class="quiet"
                onClick={() => setOpen(true)}
                title="The API documents that this page shows, as JSON"
            >
                JSON
            </button>
            {isOpen && <Json paths={paths} onClose={() => setOpen(false)} />}
        </>
    );
}

function Json({ paths, onClose }: { paths: readonly string[]; onClose: () => void }) {
    const [path, setPath] = useState(paths[0] ?? '');
    const [text, setText] = useState('…');
    const [told, setTold] = useState('');
    useEffect(() => {
        const stop = new AbortController();
        setText('…');
        ask(path, { signal: stop.signal })
            .then(answer => answer.json())
            .then(value => setText(visibleLines(JSON.stringify(value, null, 2))))
            .catch((error: Error) => stop.signal.aborted || setText(error.message));
        return () => stop.abort();
    }, [path]);
    const copy = (): void => {
        navigator.clipboard.writeText(text).then(
            () => setTold('Copied.'),
            () => setTold('The browser did not let the page copy. Select the text and copy it.'),
        );
    };
    return (
        <Dialog title="This page as JSON" onClose={onClose} isWide>
            <div class="row">
                <label>
                    Document{' '}
                    <select value={path} onChange={event => setPath(event.currentTarget.value)}>
                        {paths.map(path => (
                            <option key={path}>{path}</option>
                        ))}
                    </select>
                </label>
                <button type="button" onClick={copy}>
                    Copy
                </button>
                <button type="button" onClick={() => save(path, text)}>
                    Download
                </button>
                <span role="status">{told}</span>
            </div>
            <pre class="json" tabIndex={0}>
                {text.length > SHOWN
                    ? `${text.slice(0, SHOWN)}\n… ${text.length - SHOWN} more characters. Copy or download the document to see them.`
                    : text}
            </pre>
        </Dialog>
    );
}

const SHOWN = 200_000;

export function save(path: string, text: string): void {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([text], { type: 'application/json' }));
    link.download = `${path.replace(/^\/v1\//, '').replace(/\W+/g, '-')}.json`;
    link.click();
    URL.revokeObjectURL(link.href);
}
