// The operator: a token and its contents. Where no token is needed (a socket that only the operator
// can open), it is a name that the operator entered once. The token stays in this tab and ends with
// it. The name stays in this browser. Both are stored for this origin.
import { Signal } from './signal';
import { readToken, type Token } from './token';

const TOKEN = 'bywash.token';
const NAME = 'bywash.name';

export const token = new Signal<Token | undefined>(readToken(kept(() => sessionStorage, TOKEN)));
export const name = new Signal<string>(kept(() => localStorage, NAME));

/** Stores a token for this tab. `./enter` has checked that it is valid. */
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

/** Takes over a name that the operator enters on another page in this browser. */
export function watchOtherPages(): void {
    addEventListener('storage', event => {
        if (event.key === NAME) name.set(event.newValue ?? '');
    });
}

/** Returns why this operator may not decide; undefined if they may. */
export const mayNotDecide = (of: Token | undefined): string | undefined =>
    of && !of.decides
        ? 'Your token is read-only. To take decisions, run `bywash console` and open the link that it prints.'
        : undefined;

// A browser that forbids storage throws as soon as the storage is named, so `of` names it late.
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
        // Storage is switched off, so the value lasts only as long as this page.
    }
}
