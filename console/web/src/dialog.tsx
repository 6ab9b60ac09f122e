// A dialog, the browser's own element. It keeps the focus inside, and Esc closes it. The focus then
// returns to where it was before.
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';

export function Dialog({
    title,
    onClose,
    children,
    isWide,
}: {
    title: string;
    onClose: () => void;
    children: ComponentChildren;
    isWide?: boolean;
}) {
    const place = useRef<HTMLDialogElement>(null);
    const id = useId();
    useEffect(() => {
        const before = document.activeElement;
        const dialog = place.current;
        dialog?.showModal();
        return () => {
            dialog?.close();
            if (before instanceof HTMLElement && before.isConnected) before.focus();
        };
    }, []);
    return (
        <dialog
            ref={place}
            class={isWide ? 'wide' : ''}
            aria-labelledby={id}
            onCancel={event => {
                event.preventDefault();
                onClose();
            }}
            onClick={event => event.target === place.current && onClose()}
        >
            <div class="sheet">
                <header>
                    <h2 id={id}>{title}</h2>
                    <button type="button" class="quiet" aria-label="Close" onClick={onClose}>
                        ✕
                    </button>
                </header>
                {children}
            </div>
        </dialog>
    );
}
