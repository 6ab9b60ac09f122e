// A value whose changes redraw the views that use it.
import { useEffect, useState } from 'preact/hooks';

export class Signal<T> {
    private readonly watchers = new Set<(value: T) => void>();

    constructor(public value: T) {}

    set(value: T): void {
        if (Object.is(value, this.value)) return;
        this.value = value;
        for (const watcher of [...this.watchers]) watcher(value);
    }

    watch(watcher: (value: T) => void): () => void {
        this.watchers.add(watcher);
        return () => void this.watchers.delete(watcher);
    }
}

/** Returns the value, and redraws the view whenever it changes. */
export function use<T>(signal: Signal<T>): T {
    const [, again] = useState(0);
    useEffect(() => {
        const seen = signal.value;
        const stop = signal.watch(() => again(count => count + 1));
        if (!Object.is(seen, signal.value)) again(count => count + 1);
        return stop;
    }, [signal]);
    return signal.value;
}
