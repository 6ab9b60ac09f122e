// The current address within the console, as the address bar shows it. A link with a token is
// removed from the address bar, and the address from before the link is restored.
import { enterByLink } from './enter';
import { Signal } from './signal';
import { readPlace, type Place } from './view';

const LOGIN = '#/login/';
const WAS = 'bywash.was';

export const place = new Signal<Place>(readPlace(''));

/**
 * Begins to follow the address bar. The promise resolves when the token in the first address has
 * been checked, if there is one.
 */
export async function beginPlace(): Promise<void> {
    addEventListener('hashchange', () => void look());
    await look();
}

/** Changes the fragment of the address without a new entry in the browser's history. */
export function replace(hash: string): void {
    history.replaceState(null, '', hash);
    void look();
}

async function look(): Promise<void> {
    const link = location.hash;
    if (link.startsWith(LOGIN)) history.replaceState(null, '', remembered());
    remember(location.hash);
    place.set(readPlace(location.hash));
    if (link.startsWith(LOGIN)) await enterByLink(link);
}

function remember(hash: string): void {
    try {
        sessionStorage.setItem(WAS, hash);
    } catch {
        // Without storage, a link with a token leads to the first page.
    }
}

function remembered(): string {
    try {
        return sessionStorage.getItem(WAS) || '#/now';
    } catch {
        return '#/now';
    }
}
