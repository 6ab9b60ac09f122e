// The keyboard: `g` and a letter open a view, `/` moves to the filter, `?` shows all keys. The keys
// do nothing while the operator types into a field or a dialog is open.
import type { View } from './view';

export const LETTERS: Record<View, string> = {
    now: 'n',
    classes: 'c',
    why: 'w',
    elephants: 'e',
    saved: 's',
    sessions: 'i',
    policy: 'p',
    fleet: 'f',
    lab: 'l',
};

const WAITS = 1500;

export function listenToKeys(go: (view: View) => void, help: () => void): () => void {
    let begun = 0;
    const press = (event: KeyboardEvent): void => {
        if (
            event.ctrlKey ||
            event.metaKey ||
            event.altKey ||
            isWriting(event.target) ||
            document.querySelector('dialog[open]')
        )
            return;
        const isSecond = Date.now() - begun < WAITS;
        begun = 0;
        const view = (Object.keys(LETTERS) as View[]).find(view => LETTERS[view] === event.key);
        if (isSecond && view) go(view);
        else if (event.key === 'g') begun = Date.now();
        else if (event.key === '/') document.querySelector<HTMLInputElement>('input[type=search]')?.focus();
        else if (event.key === '?') help();
        else return;
        event.preventDefault();
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
}

const isWriting = (target: EventTarget | null): boolean =>
    target instanceof HTMLElement && target.matches('input, textarea, select, [contenteditable]');
