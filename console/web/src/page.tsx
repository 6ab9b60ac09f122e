// The frame of a view: the question that it answers, the JSON behind it, and its contents.
import type { ComponentChildren } from 'preact';
import { JsonButton } from './json';

interface Properties {
    question: string;
    json: readonly string[];
    /** The controls next to the question. */
    tools?: ComponentChildren;
    children: ComponentChildren;
}

export function Page({ question, json, tools, children }: Properties) {
    return (
        <>
            <header class="question">
                <h1>{question}</h1>
                <div class="row tools">
                    {tools}
                    <JsonButton paths={json} />
                </div>
            </header>
            {children}
        </>
    );
}

export function Panel({
    title,
    aside,
    children,
    kind,
}: {
    title: ComponentChildren;
    aside?: ComponentChildren;
    children: ComponentChildren;
    kind?: string;
}) {
    return (
        <section class={`panel ${kind ?? ''}`}>
            <header>
                <h2>{title}</h2>
                {aside && <div class="row">{aside}</div>}
            </header>
            {children}
        </section>
    );
}

/** A choice from a few options, as links, so that the selected option is in the address. */
export function Choice<N extends string>({
    label,
    of,
    at,
    to,
}: {
    label: string;
    of: readonly N[];
    at: N;
    to: (name: N) => string;
}) {
    return (
        <nav class="choice" aria-label={label}>
            {of.map(name => (
                <a key={name} href={to(name)} aria-current={name === at ? 'true' : undefined}>
                    {name}
                </a>
            ))}
        </nav>
    );
}
