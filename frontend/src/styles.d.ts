// A style sheet is imported for its effect: the bundler gathers all into one file.
declare module "*.css";
