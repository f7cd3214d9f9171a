// A chief that dies, and something else in its place for a while: whoever has been a member goes on knocking until the chief is back.
#include "runtime/processes_for_tests.h"
#include "transport/impostor_for_tests.h"

namespace motley::runtime {
namespace {

using transport::Impostor;
using transport::Imposture;

class Reconnecting : public Processes {
 protected:
  [[nodiscard]] bool anyone_has_given_up() const {
    return std::any_of(workers.begin(), workers.end(), [](const auto& worker) { return worker->over.has_value(); });
  }
  /// Until everybody has been answered, twice on average.
  void face(Impostor& impostor, Imposture imposture) {
    impostor.imposture = imposture;
    impostor.answered = 0;
    ASSERT_TRUE(run_until(io, [&] { return impostor.answered >= 2 * workers.size() || anyone_has_given_up(); }));
    for (const auto& worker : workers)
      ASSERT_FALSE(worker->over) << "it gave up when it met impostor " << static_cast<int>(imposture) << ": "
                                 << worker->over->error().message;
  }
  [[nodiscard]] bool some_worker_says(std::string_view words) const {
    for (const auto& worker : workers)
      for (const std::string& line : worker->log)
        if (line.find(words) != std::string::npos) return true;
    return false;
  }
};

TEST_F(Reconnecting, MembersOutlastWhateverTakesTheChiefsPlace) {
  options.token = "a secret of many letters";
  job.checkpoint_every = 4;
  Gate gate;
  start_all(&gate);
  const Opens opens{gate};
  chief->when_told = [&](const trace::Event& event) {
    if (event.kind == trace::Kind::applied && event.version.value == 6) gate.close();
  };
  ASSERT_TRUE(run_until(io, [&] { return chief->story.version() == 6 && !chief->saved().empty(); }));
  const Saved saved = chief->saved().at(0);
  chief.reset();
  {
    Impostor impostor(io, address);
    for (const Imposture imposture : transport::impostures) ASSERT_NO_FATAL_FAILURE(face(impostor, imposture));
  }
  EXPECT_TRUE(some_worker_says("SSH-2.0-OpenSSH_9.2p1"));
  EXPECT_TRUE(some_worker_says("HTTP/1.1 400 Bad Request"));
  EXPECT_TRUE(some_worker_says("another version"));
  gate.open();
  start_chief(&saved);
  ASSERT_TRUE(all_are_over());
  expect_all_good();
  EXPECT_EQ((*chief->over)->why, protocol::EndReason::every_sample_counted);
  EXPECT_EQ(chief->values(), train_by_hand(job));
}

TEST_F(Reconnecting, AMemberEndsWhenItIsProvenThatTheJobIsAnother) {
  options.token = "a secret of many letters";
  options.job.fill(std::byte{1});
  start_all();
  ASSERT_TRUE(reaches(3));
  chief.reset();
  options.job.fill(std::byte{2});
  start_chief();
  ASSERT_TRUE(run_until(
      io, [&] { return std::all_of(workers.begin(), workers.end(), [](const auto& worker) { return worker->over.has_value(); }); }));
  for (const auto& worker : workers) {
    ASSERT_FALSE(worker->over->ok());
    EXPECT_EQ(worker->over->error().next, Next::tell_user);
    EXPECT_NE(worker->over->error().message.find("another job"), std::string::npos) << worker->over->error().message;
  }
}

TEST_F(Reconnecting, AMembersPatienceEnds) {
  Gate gate;
  start_chief();
  workers.push_back(std::make_unique<SmallWorker>(io, job, address, 0, &gate, options, std::chrono::milliseconds(1)));
  ASSERT_TRUE(run_until(io, [&] { return !workers[0]->log.empty(); }));
  chief.reset();
  Impostor impostor(io, address);
  ASSERT_TRUE(run_until(io, [&] { return workers[0]->over.has_value(); }));
  ASSERT_FALSE(workers[0]->over->ok());
  EXPECT_EQ(workers[0]->over->error().next, Next::give_up);
  EXPECT_NE(workers[0]->over->error().message.find("no chief at unix:"), std::string::npos) << workers[0]->over->error().message;
}

TEST_F(Reconnecting, WhoWasNeverAMemberIsToldWhatItFoundAndEnds) {
  Impostor impostor(io, address);
  for (const auto& [imposture, words] :
       {std::pair{Imposture::ssh, "\"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\""}, std::pair{Imposture::http, "\"HTTP/1.1 400 Bad Request\""},
        std::pair{Imposture::other_version, "another version"}, std::pair{Imposture::wrong_token, "wrong token"},
        std::pair{Imposture::other_job, "another job"}, std::pair{Imposture::welcome, "wrong token"}}) {
    impostor.imposture = imposture;
    options.token = "a secret of many letters";
    SmallWorker& joining = start_worker(0);
    ASSERT_TRUE(run_until(io, [&] { return joining.over.has_value(); }));
    ASSERT_FALSE(joining.over->ok());
    EXPECT_EQ(joining.over->error().next, Next::tell_user);
    EXPECT_NE(joining.over->error().message.find(words), std::string::npos) << joining.over->error().message;
  }
}

}  // namespace
}  // namespace motley::runtime
