// Logging in with a token. Any page can lead to a link with a token, so the console asks the
// gateway first whether the token is valid. It replaces another operator's token only if the
// operator agrees.
import { closed, Refused, refusal } from './client';
import { keepToken, token } from './operator';
import { Signal } from './signal';
import { tokenIn, type Token } from './token';

/** A valid token from a link, while another operator is logged in. */
export const offered = new Signal<Token | undefined>(undefined);

/** The reason why the token of a link was not accepted while an operator is logged in. */
export const declined = new Signal<Refused | undefined>(undefined);

export type Entry = { take: Token } | { ask: Token } | { refuse: Refused };

/** Decides what to do with a pasted or linked token while `here` is the token in use. */
export async function entry(
    pasted: string,
    here: Token | undefined,
    asks: (of: Token) => Promise<Refused | undefined>,
): Promise<Entry> {
    const read = tokenIn(pasted);
    if (!read)
        return {
            refuse: new Refused(
                401,
                'unauthorised',
                'This is not a token: a token begins with `v1.` and has five parts.',
            ),
        };
    const refused = await asks(read);
    if (refused) return { refuse: refused };
    const isSame = !here || (here.name === read.name && here.decides === read.decides);
    return isSame ? { take: read } : { ask: read };
}

/** Logs in by a link, which the operator did not necessarily want. */
export async function enterByLink(link: string): Promise<void> {
    // While the console is closed, the present token does not count, because it was refused.
    const looks = () => (closed.value ? undefined : token.value);
    const here = looks();
    let found = await entry(link, here, refusal);
    // Another token may have been pasted meanwhile.
    if ('take' in found && looks() !== here) found = { ask: found.take };
    if ('take' in found) take(found.take);
    else if ('ask' in found) offered.set(found.ask);
    else (here ? declined : closed).set(found.refuse);
}

/** Logs in by a text that an operator has pasted. Returns the reason if it was not accepted. */
export async function enterByHand(pasted: string): Promise<Refused | undefined> {
    const found = await entry(pasted, undefined, refusal);
    if ('take' in found) take(found.take);
    return 'refuse' in found ? found.refuse : undefined;
}

export function take(taken: Token): void {
    keepToken(taken);
    offered.set(undefined);
    declined.set(undefined);
    closed.set(undefined);
}
