// Formats numbers as they appear on a page: three significant digits, thin spaces between
// thousands, and the unit after a thin space. An unknown value becomes an en dash and never a
// number.

const THIN = '\u2009';
export const NONE = '–';

export type Unknown = null | undefined;

/** Inserts thin spaces between thousands. */
export function grouped(text: string): string {
    const [whole = '', part] = text.split('.');
    const spaced = whole.replace(/\B(?=(\d{3})+$)/g, THIN);
    return part === undefined ? spaced : `${spaced}.${part}`;
}

/**
 * Formats a number with up to three significant digits. Numbers from 100 on are formatted as whole
 * numbers.
 */
export function number(value: number | Unknown): string {
    if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
    const size = Math.abs(value);
    if (size === 0) return '0';
    if (size < 0.001) return value.toExponential(1).replace('-', '−');
    const digits = size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;
    const text = grouped(String(Number(size.toFixed(digits))));
    return value < 0 ? `−${text}` : text;
}

export const count = (value: number | Unknown): string =>
    value === null || value === undefined || !Number.isFinite(value) ? NONE : grouped(Math.round(value).toString());

const withUnit = (value: number | Unknown, unit: string): string => {
    const text = number(value);
    return text === NONE ? text : `${text}${THIN}${unit}`;
};

/** Formats a rate. Two digits are enough, because rates change every second. */
export function perSecond(value: number | Unknown): string {
    if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
    const text =
        value === 0 || value >= 19.95
            ? count(value)
            : value >= 0.95
              ? value.toFixed(1)
              : value >= 0.005
                ? value.toFixed(2)
                : '<0.01';
    return `${text}${THIN}/s`;
}

/** Formats a fraction as a percentage. A value just below 100 % is not rounded up to 100 %. */
export function percent(share: number | Unknown): string {
    if (share === null || share === undefined || !Number.isFinite(share)) return NONE;
    const of = share * 100;
    const size = Math.abs(of);
    const text =
        size === 0
            ? '0'
            : size < 0.1
              ? '<0.1'
              : size > 99.9 && size < 100
                ? '>99.9'
                : size < 9.95 || (size > 99 && size < 100)
                  ? size.toFixed(1)
                  : grouped(size.toFixed(0));
    return `${of < 0 ? '−' : ''}${text}${THIN}%`;
}

/** Formats a measured duration. */
export function duration(ms: number | Unknown): string {
    if (ms === null || ms === undefined || !Number.isFinite(ms)) return NONE;
    const size = Math.abs(ms);
    if (size === 0) return `0${THIN}ms`;
    if (size < 1) return withUnit(ms * 1000, 'µs');
    if (size < 1000) return withUnit(ms, 'ms');
    if (size < 120_000) return withUnit(ms / 1000, 's');
    if (size < 7_200_000) return withUnit(ms / 60_000, 'min');
    return withUnit(ms / 3_600_000, 'h');
}

/** Formats how long something has lasted or will last, for people: `3 min`, `1 h 20 min`. */
export function lasting(ms: number): string {
    const seconds = Math.max(0, Math.round(ms / 1000));
    if (seconds < 120) return `${seconds}${THIN}s`;
    const minutes = Math.floor(seconds / 60);
    if (minutes < 120) return `${minutes}${THIN}min`;
    const hours = Math.floor(minutes / 60);
    if (hours >= 48) return `${Math.floor(hours / 24)}${THIN}d`;
    return minutes % 60 ? `${hours}${THIN}h ${minutes % 60}${THIN}min` : `${hours}${THIN}h`;
}

export function bytes(value: number | Unknown): string {
    if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
    for (const [size, unit] of [
        [1e9, 'GB'],
        [1e6, 'MB'],
        [1e3, 'kB'],
    ] as const)
        if (Math.abs(value) >= size) return withUnit(value / size, unit);
    return withUnit(value, 'B');
}

const two = (value: number): string => value.toString().padStart(2, '0');

/** Formats the time of day, in this browser's zone. */
export function clock(ms: number): string {
    const at = new Date(ms);
    return Number.isNaN(at.getTime()) ? NONE : `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** Formats the time of day with milliseconds. */
export const exactly = (ms: number): string =>
    `${clock(ms)}.${Math.floor(((ms % 1000) + 1000) % 1000)
        .toString()
        .padStart(3, '0')}`;

/** Formats a time, with the date if that is not today. */
export function moment(ms: number, now: number): string {
    const at = new Date(ms);
    if (Number.isNaN(at.getTime())) return NONE;
    const day =
        at.toDateString() === new Date(now).toDateString()
            ? ''
            : `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} `;
    return day + clock(ms);
}

/** Parses a duration as the configuration writes it (`1.5s`) into milliseconds. */
export function spanMs(text: string): number | undefined {
    const read = /^\s*([\d.]+)\s*(ns|us|ms|s|m|h)\s*$/.exec(text);
    const each = { ns: 1e-6, us: 1e-3, ms: 1, s: 1000, m: 60_000, h: 3_600_000 }[read?.[2] ?? ''];
    const amount = Number(read?.[1]);
    return each === undefined || Number.isNaN(amount) ? undefined : amount * each;
}
