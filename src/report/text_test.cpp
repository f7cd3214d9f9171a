// Names written by others must not reach a terminal, a table or a page as commands.
#include "report/text.h"

#include <gtest/gtest.h>

#include "report/markup_for_tests.h"

namespace motley::report {
namespace {

using Lines = std::vector<std::string>;

TEST(Text, EscapesWhatMarkupWouldTakeForItsOwn) {
  EXPECT_EQ(escape_xml("<b a=\"1\" c='2'>&</b>"), "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;&lt;/b&gt;");
}

TEST(Text, EscapesWhatAMarkdownCellWouldTakeForItsOwn) {
  EXPECT_EQ(escape_markdown("a|b*c_d`e\\f<g>[h]&"), "a\\|b\\*c\\_d\\`e\\\\f&lt;g&gt;\\[h\\]&amp;");
}

TEST(Text, NeverSendsControlCharactersToATerminal) {
  EXPECT_EQ(printable("red\x1b[31m\x07"), "red?[31m?");
  EXPECT_EQ(printable("a\tb\nc"), "a b c");
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m"),
            "?31m");
}

TEST(Text, ReplacesBrokenBytesAndKeepsGoodOnes) {
  EXPECT_EQ(printable("größe ± € 😀"), "größe ± € 😀");
  EXPECT_EQ(printable("\xFFok"), "?ok");
  EXPECT_EQ(printable("cut \xE2\x82"), "cut ??");
  EXPECT_EQ(printable("\xC0\xAF"), "??");       // overlong '/'
  EXPECT_EQ(printable("\xED\xA0\x80"), "???");  // half a surrogate pair
  EXPECT_EQ(printable("\xEF\xBF\xBF"), "???");  // not allowed in XML
}

TEST(Text, CountsCodePointsAsColumns) {
  EXPECT_EQ(width("87.1 ± 0.2 %"), 12U);
  EXPECT_EQ(width(""), 0U);
}

TEST(Text, ShortensInTheMiddleAndOnlyWhatIsTooLong) {
  EXPECT_EQ(shorten("adaptive", 8), "adaptive");
  EXPECT_EQ(shorten("adaptive:bits=32", 9), "adap…s=32");
  EXPECT_EQ(shorten("ßßßßßß", 3), "ß…ß");
}

TEST(Text, WrapsAfterColonsAndCommasWherePossible) {
  EXPECT_EQ(wrap("hps:bits=4/8,overlap=off", 14), (Lines{"hps:bits=4/8,", "overlap=off"}));
  EXPECT_EQ(wrap("abcdefgh", 3), (Lines{"abc", "def", "gh"}));
  EXPECT_EQ(wrap("", 3), (Lines{""}));
}

TEST(MarkupChecker, CatchesPlantedMistakes) {
  EXPECT_EQ(complaint_about("<p a=\"1\">x &amp; y<br></p>"), "");
  for (const char* wrong : {"<p>", "</p>", "<p><b></p></b>", "<p a=1></p>", "<p a=\"<\"></p>", "a < b", "a & b",
                            "<p id=\"x\"/><p id=\"x\"/>", "<p a=\"\" a=\"\"/>"})
    EXPECT_NE(complaint_about(wrong), "") << wrong;
}

}  // namespace
}  // namespace motley::report
