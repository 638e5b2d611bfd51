import type { Surroundings } from '../context.js';

/** The scripts ask `tinker-rx __complete` for words, so that they never know another set of commands than the program. */
const SCRIPTS = {
  bash: `_tinker_rx() {
  local IFS=$'\\n' current="\${COMP_WORDS[COMP_CWORD]}"
  # bash takes the = of --format=json for a separate word.
  [ "$current" = = ] && current=
  COMPREPLY=($(compgen -W "$(tinker-rx __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)" -- "$current"))
}
complete -o default -F _tinker_rx tinker-rx
`,
  zsh: `#compdef tinker-rx
_tinker_rx() {
  local -a candidates
  candidates=("\${(@f)$(tinker-rx __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "\${candidates[1]}" ]]; then compadd -a candidates; else _files; fi
}
if [[ "\${zsh_eval_context[-1]}" = loadautofunc ]]; then
  # A file in fpath, at its first use.
  _tinker_rx "$@"
else
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
  compdef _tinker_rx tinker-rx
fi
`,
  fish: `function __tinker_rx_complete
  set -l words (commandline -opc)
  set -e words[1]
  tinker-rx __complete -- $words (commandline -ct) 2>/dev/null
end
complete -c tinker-rx -f -a '(__tinker_rx_complete)'
# Files, where the program has no words to offer.
complete -c tinker-rx -F -n 'test -z "$(__tinker_rx_complete)"'
`,
};

export default async function completion({ stdout }: Surroundings, shell: keyof typeof SCRIPTS): Promise<void> {
  stdout.write(SCRIPTS[shell]);
}
