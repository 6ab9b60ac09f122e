// Where one is now, as the address bar says it. A link with a token is taken out of the address bar, and one is again
// where one was.
import { enterByLink } from './enter';
import { readRoute, type Route } from './route';
import { Signal } from './signal';

const LOGIN = '#/login/';
const WAS = 'bywash.was';

export const place = new Signal<Route>(readRoute(''));

/** Ends when the token that one came with, if any, was looked at. */
export async function beginPlace(): Promise<void> {
    addEventListener('hashchange', () => void look());
    await look();
}

/** Changes what is selected without a step back to before. */
export function replace(hash: string): void {
    history.replaceState(null, '', hash);
    void look();
}

async function look(): Promise<void> {
    const link = location.hash;
    if (link.startsWith(LOGIN)) history.replaceState(null, '', remembered());
    remember(location.hash);
    place.set(readRoute(location.hash));
    if (link.startsWith(LOGIN)) await enterByLink(link);
}

function remember(hash: string): void {
    try {
        sessionStorage.setItem(WAS, hash);
    } catch {
        // Then a new link leads to the first page.
    }
}

function remembered(): string {
    try {
        return sessionStorage.getItem(WAS) || '#/now';
    } catch {
        return '#/now';
    }
}
