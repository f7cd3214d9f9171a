#!/bin/sh
# Finds retired words in identifiers, comments, messages and documentation.
#
#   scripts/words.sh             checks every tracked text file
#   scripts/words.sh PATH...     checks these files and folders
#
# Prints `file:line: found -> replacement` for each hit. Exit status: 0 nothing found, 1 something found, 2 a path does not exist.
# Needs git and perl. ctest runs it as `words`.
#
# Each line is matched in a normalised form: lower case, CamelCase and snake_case split into words. `LentBuffer` is read as `lent buffer`.
set -eu
cd "$(dirname "$0")/.."

# One row per retired word: perl regex on the normalised line | replacement. Every regex is matched between word boundaries.
# `subject:` rows are matched at the start of a comment or of a sentence in Markdown only, before normalisation.
words='
# architecture
house | project
(?:this|the|each|every|which|no|other|one|own|its) rooms?(?! (?:for|in|to|left|was|is left|it|on|of|that|and))|rooms|room.s | module
floors(?! *\[)|(?:this|the|each|lower|upper|ground|first|second|third) floor|floor [0-9] | layer
doors? | entry point; listener; acceptor
(?:src.|the room .?|module .?)hands | drivers
desks? | step executor
clerks? | background thread
crews? | batch allocator
rosters? | worker set
pump|pumps|pumped|pumping | event loop
conductors? | pipeline chief
virtual worlds? | simulator
real worlds? | real processes
# membership
newcomers? | pending worker; new worker
guests? | pending worker
strangers? | unauthenticated peer; unknown process
liars? | malicious peer
mourn|mourns|mourned|mourning | report exit
bury|buries|buried|burial|burials | retire
knock|knocks|knocked|knocking | connect
seats? | node index
enquire|enquires|enquired|briefing | JoinRequest; JobDescription
aboard | StageHello
laid(?! out) | assigned; placed; written
parted | lost its peer
# shared memory and borrowing
lend|lends|lent|lending|lender|loans?|lendable | borrow; borrowed; shared buffer
(?:is|are|was|so|all|a|an|any|the|everyone|everybody|nobody|who|whoever|gpu|of|both|that|where) near(?! (?:zero|nothing|[0-9]|the|each|its|it|that|to|one|global|largest|\$)) | on the same host; shared memory
near (?:ones?|workers?|servers?|gpus?|devices?|nodes?|links?|peers?|ends?|process(?:es)?|members?|sides?)|nearby | on the same host; shared memory
grains? | batch multiple
(?:in|as|by|of|or|and) halves|halves (?:are|travel|come|go) | bf16
(?:numbers|values|weights|floats) (?:of|with|in) (?:16|sixteen) bits|sixteen bits|16 bits a value | bf16
# sending
travel|travels|travell?ed|travell?ing | is sent; transfer
(?:on|under) (?:the|its|their|his|her|our|my|your) way|under ?way | in flight; being sent; in progress
(?:own|local|whole|common|worker.s|device.s|everyone.s|everybody.s) way(?! (?:of|to)) | delta; local update
sets? out|setting out | begins a round
parcels? | bulk message
rides?|ridden|riding | is sent in
lands?|landed|landing|landings | arrives; receive buffer
hears?|heard|hearing | receive
inlets? | host-to-device copy
# speculation and local steps
(?<!without=)(?<!compensate )(?<!`)(?<!::)foresees?(?!", policy)(?!,)(?! rates)|foresaw|foreseen(?! sgd)|foreseeing|foresight|foretells?|foretold|foretelling | speculate; predict
walk|walks|walked|walking|walkers? | local steps; iterate
unrest | divergence
shy|shyness | failed learning rate
calms?|calmed|calmer|calming | converging; stable
boxed|unboxed|boxing | time-limited
(?<!control )variates? | control variate
(?<!without=)(?<!hold )(?<!`)(?<!::)(?<!noise to )judges?(?!", policy)(?!,)(?! cancel) | alignment test
regrets?|regretted | accumulated loss
forgiven|forgiveness|forgives? | decay
down payments? | replan threshold
stints? | step outcome
spells? | slow period
cadences? | layer timing
outlooks? | snapshot format
outset|outsets | initial state
# reports
ribbons? | state timeline
(?<!of )(?<!in the )(?<!in due )course | run history
# metaphors
luck|lucky|unlucky|luckily | chance
(?:the|a|so|is|are|more|less) patient | waits; timeout
into the void|nobody home|nobody is home | nothing receives it
its day | its life; the run
whoever|whomever | name the subject: the worker that, any process that
subject:(?:Who|who|Whoever|whoever|Whom|whom|Whose|whose|What|what|Whatever|whatever|Those who|those who|Those that|those that) | name the subject: the worker that, the value that
'

if [ $# -gt 0 ]; then
  for path in "$@"; do [ -e "$path" ] || { echo "$path: no such file or folder" >&2; exit 2; }; done
else
  set -- .
fi

files() { git ls-files -co --exclude-standard -- "$@" 2>/dev/null || find "$@" -type f | sed 's|^\./||'; }
files "$@" |
  grep -E '\.(cpp|h|md|sh|py|cmake|toml|txt|yaml|yml)$|(^|/)(Makefile|Dockerfile)$' |
  grep -vE '^(scripts/words\.sh|CHANGELOG\.md)$|/renamed_keys(_test)?\.cpp$' |
  WORDS="$words" exec perl -e '
    use strict; use warnings;
    my (@names, @plain, @subject, %replacement);
    for (split /\n/, $ENV{WORDS}) {
      next if /^\s*(#|$)/;
      my ($regex, $replacement) = /^(.*\S)\s+\|\s+(.*)$/ or die "words.sh: a row without a replacement: $_\n";
      my $subject = $regex =~ s/^subject://;
      my $name = "r" . keys %replacement;
      $replacement{$name} = $replacement;
      push @{$subject ? \@subject : \@plain}, "(?<$name>$regex)";
    }
    my $plain = join "|", @plain;
    my $subject = join "|", @subject;
    $plain = qr/\b(?:$plain)\b/;
    $subject = qr/(?:$subject)/;
    my $found = 0;
    my $report = sub { $found = 1; print "$_[0]:$_[1]: $_[2] -> $_[3]\n" };
    while (my $path = <STDIN>) {
      chomp $path;
      open my $file, "<", $path or next;
      (my $file_name = lc $path =~ s{.*/}{}r) =~ s/[_.-]/ /g;
      if ($file_name =~ /$plain/) { my ($text, $name) = ($&, keys %+); $report->($path, 1, "file name: $text", $replacement{$name}); }
      my $markdown = $path =~ /\.md$/;
      my $comment = $path =~ /\.(cpp|h)$/ ? qr{(?:///?<?|/\*)\s+} : qr{(?:^|\s)#+\s+};
      while (my $line = <$file>) {
        # A question, and "What it is: ..." as a heading of a list, have these words as their subject rightly.
        if ($markdown ? $line =~ /(?:^|[.;:] |^\s*[-*] )($subject)\b(?![^.]*\?)(?! (?:is|was|are)\b.{0,60}:)/
                      : $line =~ /$comment($subject)\b(?![^.]*\?)/) {
          my ($name) = keys %+; $report->($path, $., $1, $replacement{$name});
        }
        my $normal = $line;
        $normal =~ s/([a-z0-9])([A-Z])/$1 $2/g;
        $normal =~ s/(?<=[a-zA-Z0-9])_|_(?=[a-zA-Z0-9])/ /g;
        $normal = lc $normal;
        while ($normal =~ /$plain/g) {
          my ($text, $name) = ($&, keys %+); $report->($path, $., $text, $replacement{$name});
        }
      }
    }
    exit $found;'
