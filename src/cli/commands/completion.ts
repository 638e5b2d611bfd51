import type { Surroundings } from '../context.js';

/** The scripts ask `tinker-rx __complete` for words, so that they never know another set of commands than the program. */
const SCRIPTS = {
  bash: `_tinker_rx() {
  local IFS=$'\\n'
  COMPREPLY=($(compgen -W "$(tinker-rx __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _tinker_rx tinker-rx
`,
  zsh: `#compdef tinker-rx
_tinker_rx() {
  local -a candidates
  candidates=("\${(@f)$(tinker-rx __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "\${candidates[1]}" ]]; then compadd -a candidates; else _files; fi
}
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
compdef _tinker_rx tinker-rx
`,
  fish: `complete -c tinker-rx -a '(tinker-rx __complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
`,
};

export default async function completion({ stdout }: Surroundings, shell: keyof typeof SCRIPTS): Promise<void> {
  stdout.write(SCRIPTS[shell]);
}
