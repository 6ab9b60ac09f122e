// Comes in with a token. Any page can lead to a link with one, so the gateway is asked first whether the token is good,
// and it takes the place of another operator's only when the one who looks says so.
import { closed, Refused, refusal } from './client';
import { keepToken, token } from './operator';
import { Signal } from './signal';
import { tokenIn, type Token } from './token';

/** A good token that a link brought while another operator is here. */
export const offered = new Signal<Token | undefined>(undefined);

/** Why the token of a link was not taken while an operator is here. */
export const declined = new Signal<Refused | undefined>(undefined);

export type Entry = { take: Token } | { ask: Token } | { refuse: Refused };

/** What follows for what was pasted or linked, while `here` looks. */
export async function entry(
    pasted: string,
    here: Token | undefined,
    asks: (of: Token) => Promise<Refused | undefined>,
): Promise<Entry> {
    const read = tokenIn(pasted);
    if (!read)
        return {
            refuse: new Refused(401, 'unauthorised', 'That is no token: it begins with `v1.` and has five parts.'),
        };
    const refused = await asks(read);
    if (refused) return { refuse: refused };
    const isSame = !here || (here.name === read.name && here.decides === read.decides);
    return isSame ? { take: read } : { ask: read };
}

/** By a link, which need not be what the operator wanted. */
export async function enterByLink(link: string): Promise<void> {
    // Where the console is closed, the token that is there was refused.
    const looks = () => (closed.value ? undefined : token.value);
    const here = looks();
    let found = await entry(link, here, refusal);
    // Another token may have been pasted meanwhile.
    if ('take' in found && looks() !== here) found = { ask: found.take };
    if ('take' in found) take(found.take);
    else if ('ask' in found) offered.set(found.ask);
    else (here ? declined : closed).set(found.refuse);
}

/** By what an operator has pasted. Gives why it was not taken. */
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
