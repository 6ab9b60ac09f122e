// The theme, light or dark: that of the system, or the one that the operator chose in this browser.
// Charts are drawn with the colours of the style sheet, and are redrawn when the colours change.
import { Signal } from './signal';

export type Theme = 'system' | 'light' | 'dark';
const KEY = 'bywash.theme';
const NEXT: Record<Theme, Theme> = { system: 'light', light: 'dark', dark: 'system' };

export const theme = new Signal<Theme>(kept());
/** A number that increases whenever the colours change. */
export const palette = new Signal(0);

export function beginTheme(): void {
    apply(theme.value);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => palette.set(palette.value + 1));
}

export function nextTheme(): void {
    const next = NEXT[theme.value];
    try {
        localStorage.setItem(KEY, next);
    } catch {
        // Without storage, the choice lasts only as long as this page.
    }
    theme.set(next);
    apply(next);
    palette.set(palette.value + 1);
}

const known = new Map<string, string>();
let knownOf = -1;

/**
 * Returns a colour of the style sheet. It is cached, because a read makes the browser compute the
 * styles of the whole page.
 */
export function colour(property: string): string {
    if (knownOf !== palette.value) known.clear();
    knownOf = palette.value;
    const text =
        known.get(property) ?? (getComputedStyle(document.documentElement).getPropertyValue(property).trim() || '#888');
    known.set(property, text);
    return text;
}

function apply(of: Theme): void {
    if (of === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = of;
}

function kept(): Theme {
    try {
        const text = localStorage.getItem(KEY);
        return text === 'light' || text === 'dark' ? text : 'system';
    } catch {
        return 'system';
    }
}
