// A chief that dies, another program on its port, and the chief that returns: workers and servers have waited for it. And a flooded chief:
// its log stays short.
#include <boost/asio/io_context.hpp>

#include "real_cluster.h"
#include "real_raw_client.h"
#include "transport/impostor_for_tests.h"

namespace real {
namespace {

using Words = std::vector<std::string>;

class RealReconnect : public RealCluster {
 protected:
  void SetUp() override {
    RealCluster::SetUp();
    std::string two = small_job;
    two.erase(two.rfind("[[cluster.node]]"));
    write("two.toml", two);
    write("token", "a secret of many letters\n");
  }
  Program serve(const std::string& listen, const std::string& name, const Words& more = {}) {
    Words words{"chief",
                "two.toml",
                "--listen",
                listen,
                "--out",
                "run",
                "--checkpoint-every",
                "10",
                "--token-file",
                "token",
                "--set",
                "wire.slice=\"512B\"",
                "--set",
                "cluster.server.count=2",
                "--set",
                "cluster.node.a.samples_per_second=1400",
                "--set",
                "cluster.node.b.samples_per_second=1400"};
    words.insert(words.end(), more.begin(), more.end());
    return motley(words, name);
  }
  /// HOST:PORT, once it listens.
  static std::string address_of(Program& chief) {
    const std::string words = "listening on ";
    if (!chief.says(", run folder")) return "";
    const std::string reported = chief.err();
    const std::size_t at = reported.find(words) + words.size();
    return reported.substr(at, reported.find(',', at) - at);
  }
};

TEST_F(RealReconnect, Workers_and_servers_outlast_another_program_on_the_port) {
  Program first = serve("127.0.0.1:0", "first");
  const std::string address = address_of(first);
  const auto join = [&](Words words, const std::string& name) {
    words.insert(words.begin() + 1, {"--join", address, "--token-file", "token"});
    return motley(words, name);
  };
  std::map<std::string, Program> members;
  for (const char* node : {"a", "b"}) members.emplace(node, join({"worker", "--node", node}, node));
  members.emplace("server", join({"server", "--server", "1"}, "server"));
  ASSERT_TRUE(wait_until([&] { return !first.alive() || fs::exists(folder_ / "run/checkpoints/latest"); }));
  ASSERT_TRUE(first.alive()) << first.err();
  first.signal(SIGKILL);
  first.wait();
  {
    boost::asio::io_context io;
    const auto port = static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
    motley::transport::Impostor impostor(io, motley::transport::TcpAddress{"127.0.0.1", port});
    for (const auto& [imposture, words] : {std::pair{motley::transport::Imposture::ssh, "SSH-2.0-OpenSSH"},
                                           std::pair{motley::transport::Imposture::other_version, "another version"},
                                           std::pair{motley::transport::Imposture::wrong_token, "wrong token"}}) {
      impostor.imposture = imposture;
      for (auto& [name, member] : members) {
        ASSERT_TRUE(wait_until([&] {
          io.poll();
          return !member.alive() || member.err().find(words) != std::string::npos;
        }));
        ASSERT_TRUE(member.alive()) << name << " gave up:\n" << member.err();
      }
    }
  }
  Program second = serve(address, "second", {"--resume", "--json"});
  expect_good_end(second);
  EXPECT_EQ(json::parse(second.out()).at("samples").to_number<std::uint64_t>(), 4 * epoch_samples);
  for (auto& [name, member] : members) expect_good_end(member);
  expect_exact_ledger("run");
}

TEST_F(RealReconnect, Launchers_server_outlives_the_chief) {
  Program program = train("run", {"--respawn", "--checkpoint-every", "10", "--set", "wire.slice=\"512B\"", "--set",
                                  "cluster.server.count=2", "--set", "cluster.node.a.samples_per_second=1400", "--set",
                                  "cluster.node.b.samples_per_second=1400", "--set", "cluster.node.c.samples_per_second=700"});
  ASSERT_TRUE(wait_until([&] { return !program.alive() || fs::exists(folder_ / "run/checkpoints/latest"); }));
  ASSERT_TRUE(program.alive()) << program.err();
  const pid_t server = server_of(program).value();
  kill(chief_of(program).value(), SIGKILL);
  ASSERT_TRUE(program.says("going on from")) << program.err();
  EXPECT_EQ(server_of(program), server) << "it is the same process, and the only one";
  expect_good_end(program);
  expect_exact_ledger("run");
}

TEST_F(RealReconnect, Flood_logs_ten_lines_a_second_and_the_number) {
  Program chief = serve("127.0.0.1:0", "chief");
  const std::string address = address_of(chief);
  const auto port = static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  constexpr std::size_t clients = 500;
  for (std::size_t i = 0; i < clients; ++i) RawClient(port).send_bytes("GET / HTTP/1.1\r\n\r\n");

  /// The number of lines, and of refusals that they report.
  const auto logged = [&] {
    std::istringstream lines(chief.err());
    std::pair<std::size_t, std::size_t> seen{};
    for (std::string line; std::getline(lines, line);) {
      const std::size_t count = line.find("and ");
      const bool counts = count != std::string::npos && line.find(" more in the last second") != std::string::npos;
      if (!counts && line.find("refused 127.0.0.1:") == std::string::npos) continue;
      ++seen.first;
      seen.second += counts ? static_cast<std::size_t>(std::atoi(line.c_str() + count + 4)) : 1;
    }
    return seen;
  };
  ASSERT_TRUE(wait_until([&] { return !chief.alive() || logged().second >= clients; })) << chief.err();
  EXPECT_EQ(logged().second, clients) << chief.err();
  EXPECT_LT(logged().first, clients / 2);
  EXPECT_NE(chief.err().find("it begins with \"GET / HTTP/1.1\""), std::string::npos) << chief.err();
}

}  // namespace
}  // namespace real
