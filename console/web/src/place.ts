// Where one is now, as the address bar says it. A link with a token is taken out of the address bar, and one is again
// where one was.
import { closed, Refused } from './client';
import { takeToken } from './operator';
import { readRoute, type Route } from './route';
import { Signal } from './signal';

const LOGIN = '#/login/';
const WAS = 'bywash.was';

export const place = new Signal<Route>(readRoute(''));

export function beginPlace(): void {
    look();
    addEventListener('hashchange', look);
}

/** Changes what is selected without a step back to before. */
export function replace(hash: string): void {
    history.replaceState(null, '', hash);
    look();
}

function look(): void {
    if (location.hash.startsWith(LOGIN)) {
        const isGood = takeToken(location.hash);
        history.replaceState(null, '', remembered());
        closed.set(isGood ? undefined : new Refused(401, 'unauthorised', 'That link has no token that can be read.'));
    }
    remember(location.hash);
    place.set(readRoute(location.hash));
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
