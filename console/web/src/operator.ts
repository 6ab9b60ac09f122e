// Who looks: the token and what it says, or, where none is needed (a socket that only the operator opens), a name that
// was asked for once. The token stays in this tab and ends with it; the name stays in this browser. Both are under this
// origin.
import { Signal } from './signal';
import { readToken, type Token } from './token';

const TOKEN = 'bywash.token';
const NAME = 'bywash.name';

export const token = new Signal<Token | undefined>(readToken(kept(() => sessionStorage, TOKEN)));
export const name = new Signal<string>(kept(() => localStorage, NAME));

/** For this tab: `./enter` has asked whether it is good. */
export function keepToken(taken: Token): void {
    keep(() => sessionStorage, TOKEN, taken.text);
    token.set(taken);
}

export function forgetToken(): void {
    keep(() => sessionStorage, TOKEN, '');
    token.set(undefined);
}

export function takeName(given: string): void {
    keep(() => localStorage, NAME, given);
    name.set(given);
}

/** Another page of this browser may have got a name. */
export function watchOtherPages(): void {
    addEventListener('storage', event => {
        if (event.key === NAME) name.set(event.newValue ?? '');
    });
}

/** Why this operator may not decide, if so. */
export const mayNotDecide = (of: Token | undefined): string | undefined =>
    of && !of.decides ? 'Your token only reads. `bywash console` prints a link that decides.' : undefined;

// A browser that allows no storage throws as soon as it is named.
function kept(of: () => Storage, key: string): string {
    try {
        return of().getItem(key) ?? '';
    } catch {
        return '';
    }
}

function keep(of: () => Storage, key: string, text: string): void {
    try {
        if (text) of().setItem(key, text);
        else of().removeItem(key);
    } catch {
        // Storage is switched off: it lasts as long as this page.
    }
}
