// Where a token is needed: which command prints one, and a field for it. The address bar still says where one wanted to
// go.
import { visible } from './visible';
import { useState } from 'preact/hooks';
import { closed, type Refused } from './client';
import { takeToken } from './operator';

export function Login({ why }: { why: Refused }) {
    const [pasted, setPasted] = useState('');
    const [isWrong, setWrong] = useState(false);
    const enter = (event: Event): void => {
        event.preventDefault();
        const isGood = takeToken(pasted);
        setWrong(!isGood);
        if (isGood) closed.set(undefined);
    };
    return (
        <section class="login panel">
            <h1>{why.code === 'expired' ? 'Your token is too old' : 'Who are you?'}</h1>
            <p class="problem" role="alert">
                {visible(why.message)}
            </p>
            <p>Run this where the gateway runs, and open the link that it prints:</p>
            <pre>bywash console</pre>
            <form onSubmit={enter}>
                <label for="token">Or paste the link, or the token in it</label>
                <div class="row">
                    <input
                        id="token"
                        type="text"
                        autocomplete="off"
                        spellcheck={false}
                        value={pasted}
                        onInput={event => setPasted(event.currentTarget.value)}
                    />
                    <button type="submit" class="main">
                        Enter
                    </button>
                </div>
                {isWrong && <p role="alert">That is no token: it begins with `v1.` and has five parts.</p>}
            </form>
        </section>
    );
}
