// Requests to the gateway. Every answer that is not a success becomes a `Refused` with a message
// for people. A 401 (the token is unknown or expired) closes the console as a whole.
import type { paths } from './api';
import { inSlices, readInSteps } from './slices';
import { token } from './operator';
import type { Token } from './token';
import type { Problem } from './shapes';
import { Signal } from './signal';

export class Refused extends Error {
    constructor(
        readonly status: number,
        readonly code: Problem['code'] | 'unreachable',
        detail: string,
    ) {
        super(detail);
    }
}

/** Why the console shows only the login page; undefined while it shows the views. */
export const closed = new Signal<Refused | undefined>(undefined);

type Getters = {
    [P in keyof paths]: paths[P] extends { get: { responses: { 200: { content: { 'application/json': infer T } } } } }
        ? T
        : never;
};
type Posters = {
    [P in keyof paths]: paths[P] extends {
        post: {
            requestBody: { content: { 'application/json': infer B } };
            responses: { 200: { content: { 'application/json': infer T } } };
        };
    }
        ? { sends: B; gets: T }
        : never;
};
type Post<P extends keyof paths> = Posters[P];
export type Getter = { [P in keyof paths]: Getters[P] extends never ? never : P }[keyof paths];
export type Poster = { [P in keyof paths]: Posters[P] extends never ? never : P }[keyof paths];
type Filled = Record<string, string | number>;

/**
 * Returns the URL for `path`: its parameters replaced by `filled`, and `query` appended. Query
 * parameters without a value are left out.
 */
export function address(path: string, filled: Filled = {}, query: Record<string, string | undefined> = {}): string {
    const at = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(filled[name] ?? ''));
    const search = new URLSearchParams(
        Object.entries(query).filter((pair): pair is [string, string] => !!pair[1]),
    ).toString();
    return search ? `${at}?${search}` : at;
}

/** The number of characters of a JSON text above which it is parsed in slices. */
const LONG = 100_000;

export async function get<P extends Getter>(
    path: P,
    filled?: Filled,
    query?: Record<string, string | undefined>,
    signal?: AbortSignal,
): Promise<Getters[P]> {
    const text = await (await ask(address(path, filled, query), { signal: signal ?? null })).text();
    return text.length > LONG && text.startsWith('{')
        ? inSlices(readInSteps<Getters[P]>(text))
        : (JSON.parse(text) as Getters[P]);
}

export async function post<P extends Poster>(
    path: P,
    filled: Filled,
    body: Post<P> extends { sends: infer B } ? B : never,
    signal?: AbortSignal,
): Promise<Post<P> extends { gets: infer T } ? T : never> {
    const headers = { 'Content-Type': 'application/json', 'Bywash-Admin': 'console' };
    const answer = await ask(address(path, filled), {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
        signal: signal ?? null,
    });
    return answer.json();
}

/**
 * The time in milliseconds after which a gateway that does not answer about a token counts as
 * unreachable.
 */
const PATIENCE = 5000;

/** Returns why the gateway does not accept this token; undefined if it accepts the token. */
export async function refusal(of: Token): Promise<Refused | undefined> {
    try {
        await ask('/v1/status', { signal: AbortSignal.timeout(PATIENCE) }, of);
        return undefined;
    } catch (error) {
        return error instanceof Refused ? error : new Refused(0, 'unreachable', 'The gateway does not answer.');
    }
}

/** Sends a request and returns the answer if it is a success. Throws a `Refused` otherwise. */
export async function ask(at: string, init: RequestInit = {}, asked = token.value): Promise<Response> {
    const headers = new Headers(init.headers);
    if (asked) headers.set('Authorization', `Bearer ${asked.text}`);
    let answer: Response;
    try {
        answer = await fetch(at, { cache: 'no-store', ...init, headers });
    } catch (error) {
        if (init.signal?.aborted) throw error;
        throw new Refused(0, 'unreachable', 'The gateway does not answer.');
    }
    if (answer.ok) return answer;
    const refused = await problem(answer);
    if (answer.status === 401 && asked === token.value) closed.set(refused);
    throw refused;
}

async function problem(answer: Response): Promise<Refused> {
    const text = await answer.text().catch(() => '');
    try {
        const { code, detail } = JSON.parse(text) as Partial<Problem>;
        if (code && detail) return new Refused(answer.status, code, detail);
    } catch {
        // The answer is not a problem document, so its text is shown as it is.
    }
    return new Refused(
        answer.status,
        'invalid',
        text.slice(0, 500) || `The gateway answered with status ${answer.status}.`,
    );
}
