// The decisions in force that are not in the configuration file, in the syntax of that file, to be
// copied into it.
import { visibleLines } from '../visible';
import { useState } from 'preact/hooks';
import { useDocument } from '../document';
import { Panel } from '../page';
import { Problem } from '../problem';

export function Export({ revision }: { revision: string }) {
    const { value, problem, reload } = useDocument('/v1/export', { revision });
    const [told, setTold] = useState('');
    const toml = value?.toml ?? '';
    const copy = (): void => {
        navigator.clipboard.writeText(toml).then(
            () => setTold('Copied.'),
            () => setTold('The browser did not let the page copy. Select the text and copy it.'),
        );
    };
    return (
        <Panel
            title="Decisions as configuration"
            aside={
                <>
                    <span role="status">{told}</span>
                    <button type="button" onClick={copy} disabled={toml === ''}>
                        Copy as TOML
                    </button>
                </>
            }
        >
            <Problem of={problem} again={() => void reload()} />
            {toml === '' ? (
                <p class="empty">Only the configuration file is in force.</p>
            ) : (
                <pre tabIndex={0}>{visibleLines(toml.trimEnd())}</pre>
            )}
        </Panel>
    );
}
