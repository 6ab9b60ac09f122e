// Logging in with a token. Any page can lead to a link with a token, so the console asks the
// gateway first whether the token is valid. It replaces another operator's token only if the
// operator agrees.
import { closed, Refused, refusal } from './client';
import { keepToken, token } from './operator';
import { Signal } from './signal';
import { tokenIn, type Token } from './token';

/**
 * The valid token of a link that was opened while another operator is logged in. The operator must
 * confirm it.
 */
export const offered = new Signal<Token | undefined>(undefined);

/**
 * Why the token of a link was not accepted, if the link was opened while an operator is logged in.
 */
export const declined = new Signal<Refused | undefined>(undefined);

export type Entry = { take: Token } | { ask: Token } | { refuse: Refused };

/**
 * Decides what to do with the token in a pasted text or a link. `here` is the token in use. `asks`
 * asks the gateway whether a token is valid.
 */
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

/** Logs in with the token of a link, which the operator did not necessarily want to use. */
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

/**
 * Logs in with a text that an operator has pasted. Returns the reason if the gateway did not accept
 * it.
 */
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
