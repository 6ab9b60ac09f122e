// The state of the gateway in one word, from the last ten seconds, and the time for which the word
// has applied. If several words apply, the worst is shown.
import type { Rows } from './rows';

export type Word = 'CALM' | 'BUSY' | 'QUEUEING' | 'REFUSING';

export interface Pulse {
    word: Word;
    /** How long the word has applied, in milliseconds. If `isLonger`, this is a lower bound. */
    ms: number;
    isLonger: boolean;
    /** Whether requests were only observed: none was refused, but some would have been. */
    isShadow: boolean;
}

export const MEANS: Record<Word, string> = {
    CALM: 'Fewer than four of five slots are taken, and requests wait in less than half of the seconds.',
    BUSY: 'At least four of five slots are taken, and requests wait in less than half of the seconds.',
    QUEUEING: 'Requests wait for a slot in at least half of the seconds. None is refused.',
    REFUSING: 'Requests are shed or have expired: the gateway refuses them before they run.',
};
export const SIGNS: Record<Word, string> = { CALM: '○', BUSY: '◐', QUEUEING: '●', REFUSING: '▲' };
const OVER = 10;

export function pulse(rows: Rows): Pulse | undefined {
    const { length } = rows;
    if (length === 0) return undefined;
    const read = reader(rows);
    const lasted = rows.gauge('lasted_ms');
    const word = read(length - 1);
    let at = length - 1;
    let ms = lasted[at] ?? 0;
    while (at > 0 && read(at - 1) === word) ms += lasted[--at] ?? 0;
    const from = Math.max(0, length - OVER);
    const isShadow =
        word === 'REFUSING' &&
        ![rows.total.column('shed'), rows.total.column('expired')].some(list =>
            list.subarray(from).some(count => count > 0),
        );
    return { word, ms, isLonger: at === 0, isShadow };
}

/** Returns a function that determines the word at a row. */
function reader(rows: Rows): (at: number) => Word {
    const [limit, running, waiting] = [rows.gauge('limit'), rows.gauge('running'), rows.gauge('waiting')];
    const total = rows.total;
    const refusals = [total.column('shed'), total.column('expired'), total.column('shadow_refused')];
    return at => {
        let [refused, seconds, taken, slots, rowsSeen] = [0, 0, 0, 0, 0];
        for (let row = Math.max(0, at - OVER + 1); row <= at; row += 1) {
            for (const list of refusals) refused += list[row] ?? 0;
            if ((waiting[row] ?? 0) > 0) seconds += 1;
            taken += Math.min(running[row] ?? 0, limit[row] ?? 0);
            slots += limit[row] ?? 0;
            rowsSeen += 1;
        }
        if (refused > 0) return 'REFUSING';
        if (seconds * 2 >= rowsSeen) return 'QUEUEING';
        return slots > 0 && taken * 5 >= slots * 4 ? 'BUSY' : 'CALM';
    };
}
