// Text: vocabulary, samples that overlap by one character, parts that do not overlap.
#include "learn/text.h"

#include "learn/test_files.h"

namespace motley::learn {
namespace {

/// "abcabc...", 100 characters.
std::string alphabet() {
  std::string text;
  for (int i = 0; i < 100; ++i) text += static_cast<char>('a' + i % 3);
  return text;
}

TEST(Text, TheVocabularyIsTheDistinctBytesInOrder) {
  const Folder folder;
  folder.write("text", "cab" + alphabet());
  const auto text = load_text(folder.path() / "text", 4, EvaluateOn::test);
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(text->vocabulary, 3U);
  EXPECT_EQ(Bytes(text->training.begin(), text->training.begin() + 4), (Bytes{2, 0, 1, 0}));
}

TEST(Text, TheLastTenthIsTheTestPart) {
  const Folder folder;
  folder.write("text", alphabet());
  const auto text = load_text(folder.path() / "text", 4, EvaluateOn::test);
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(text->training.size(), 90U);
  EXPECT_EQ(text->evaluation.size(), 10U);
}

TEST(Text, ValidationIsTheLastTenthOfTheTrainingPart) {
  const Folder folder;
  folder.write("text", alphabet());
  const auto text = load_text(folder.path() / "text", 4, EvaluateOn::validation);
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(text->training.size(), 81U);
  EXPECT_EQ(text->evaluation.size(), 9U);
}

TEST(Text, Sample_is_the_context_and_each_following_character) {
  Text text{3, 9, {0, 1, 2, 3, 4, 5, 6}, {}};
  ASSERT_EQ(text.samples(text.training), 2U);
  std::vector<std::int64_t> codes(6), targets(6);
  text.gather(text.training, std::vector<std::uint32_t>{1, 0}, codes, targets);
  EXPECT_EQ(codes, (std::vector<std::int64_t>{3, 4, 5, 0, 1, 2}));
  EXPECT_EQ(targets, (std::vector<std::int64_t>{4, 5, 6, 1, 2, 3}));
  EXPECT_THROW(text.gather(text.training, std::vector<std::uint32_t>{2, 0}, codes, targets), Bug);
}

TEST(Text, Folder_is_its_txt_files_in_order_of_name) {
  const Folder folder;
  folder.write("2.txt", std::string(50, 'b'));
  folder.write("1.txt", std::string(50, 'a'));
  folder.write("0.md", std::string(50, 'z'));
  const auto text = load_text(folder.path(), 4, EvaluateOn::test);
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(text->vocabulary, 2U);
  EXPECT_EQ(text->training.front(), 0);
  EXPECT_EQ(text->evaluation.back(), 1);
}

TEST(Text, Names_what_cannot_be_read) {
  const Folder folder;
  expect_refused(load_text(folder.path() / "none.txt", 4, EvaluateOn::test), {"none.txt", "no such file", "[data] path"});
  expect_refused(load_text(folder.path(), 4, EvaluateOn::test), {folder.path().string(), "without .txt files"});
  folder.write("text", alphabet());
  expect_refused(load_text(folder.path() / "text", 40, EvaluateOn::test), {"text", "100 characters", "context + 1 = 41"});
  expect_refused(load_text(folder.path() / "text", 0, EvaluateOn::test), {"context = 0", "1 to 4096"});
  folder.write("same", std::string(100, 'a'));
  expect_refused(load_text(folder.path() / "same", 4, EvaluateOn::test), {"same", "one distinct character", "two or more"});
}

}  // namespace
}  // namespace motley::learn
