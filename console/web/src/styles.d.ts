// Style sheets are bundled into console.css.
declare module '*.css';
