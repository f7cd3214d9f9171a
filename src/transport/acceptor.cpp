#include "transport/acceptor.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/match.h"
#include "transport/constants.h"
#include "transport/reception.h"
#include "transport/stream.h"

namespace motley::transport {
namespace {

using Listener = asio::basic_socket_acceptor<asio::generic::stream_protocol>;
using ErrorCode = boost::system::error_code;
using Local = asio::local::stream_protocol;

Error cannot_listen(const Address& address, std::string_view why) {
  return bad_input(fmt::format("cannot listen on {}: {}", to_text(address), why));
}

asio::awaitable<void> accept_all(std::shared_ptr<Listener> listener, std::shared_ptr<Reception> reception) {
  asio::steady_timer pause(listener->get_executor());
  while (listener->is_open()) {
    auto [failed, stream] = co_await listener->async_accept(as_values);
    if (!listener->is_open()) co_return;
    if (!failed) {
      reception->admit(std::move(stream));
      continue;
    }
    const bool descriptors_ran_out = failed == asio::error::no_descriptors || failed == boost::system::errc::too_many_files_open_in_system;
    if (descriptors_ran_out && reception->evict_one()) continue;
    reception->cannot_accept(failed.message());
    pause.expires_after(accept_retry_pause);
    co_await pause.async_wait(as_values);
  }
}

class StreamAcceptor final : public Acceptor {
 public:
  StreamAcceptor(std::shared_ptr<Listener> listener, Address address, const Options& options, AcceptCallbacks& owner)
      : listener_(std::move(listener)), address_(std::move(address)), reception_(std::make_shared<Reception>(options, owner)) {
    asio::co_spawn(listener_->get_executor(), accept_all(listener_, reception_), rethrow);
  }
  StreamAcceptor(const StreamAcceptor&) = delete;
  StreamAcceptor& operator=(const StreamAcceptor&) = delete;
  ~StreamAcceptor() override {
    ErrorCode ignored;
    listener_->close(ignored);  // NOLINT(bugprone-unused-return-value): the same error
    reception_->leave();
    if (const auto* local = std::get_if<UnixAddress>(&address_)) ::unlink(local->path.c_str());
  }
  [[nodiscard]] const Address& address() const override { return address_; }

 private:
  std::shared_ptr<Listener> listener_;
  Address address_;
  std::shared_ptr<Reception> reception_;
};

/// A socket's file that refuses connections was left by a process that died.
void remove_if_stale(asio::io_context& io, const UnixAddress& address) {
  struct stat found {};
  if (::lstat(address.path.c_str(), &found) != 0 || !S_ISSOCK(found.st_mode)) return;
  Local::socket probe(io);
  ErrorCode failed;
  probe.connect(Local::endpoint(address.path), failed);  // NOLINT(bugprone-unused-return-value): the same error
  if (failed == asio::error::connection_refused) ::unlink(address.path.c_str());
}

Result<Stream::endpoint_type> endpoint_of(asio::io_context& io, const Address& address, const Options& options) {
  if (const auto* local = std::get_if<UnixAddress>(&address)) {
    remove_if_stale(io, *local);
    return Stream::endpoint_type(Local::endpoint(local->path));
  }
  const auto& tcp = std::get<TcpAddress>(address);
  ErrorCode failed;
  asio::ip::tcp::resolver resolver(io);
  const auto found = resolver.resolve(tcp.host, std::to_string(tcp.port), asio::ip::resolver_base::passive, failed);
  if (failed) return cannot_listen(address, failed.message());
  const asio::ip::tcp::endpoint endpoint = *found.begin();
  if (!endpoint.address().is_loopback() && options.token.empty())
    return cannot_listen(
        address, "other machines reach it and there is no token; give all processes of the job the same token, or listen on 127.0.0.1");
  return Stream::endpoint_type(endpoint);
}

ErrorCode open(Listener& listener, const Stream::endpoint_type& endpoint, const Address& address) {
  ErrorCode failed;
  if (listener.open(endpoint.protocol(), failed); failed) return failed;
  const auto* local = std::get_if<UnixAddress>(&address);
  if (local == nullptr)
    if (listener.set_option(Listener::reuse_address(true), failed); failed) return failed;
  if (listener.bind(endpoint, failed); failed) return failed;
  if (local != nullptr) ::chmod(local->path.c_str(), S_IRUSR | S_IWUSR);  // before listen(): no process has connected yet
  listener.listen(Listener::max_listen_connections, failed);              // NOLINT(bugprone-unused-return-value): the same error
  return failed;
}

Address real_address(const Listener& listener, const Address& asked) {
  return std::visit(match{[&](TcpAddress tcp) -> Address {
                            ErrorCode failed;
                            const auto endpoint = listener.local_endpoint(failed);
                            if (!failed)
                              tcp.port = ntohs(reinterpret_cast<const sockaddr_in*>(endpoint.data())->sin_port);  // as in sockaddr_in6
                            return tcp;
                          },
                          [](const UnixAddress& local) -> Address { return local; }},
                    asked);
}

}  // namespace

Result<std::unique_ptr<Acceptor>> listen(asio::io_context& io, const Address& address, const Options& options, AcceptCallbacks& owner) {
  const Result<Stream::endpoint_type> endpoint = endpoint_of(io, address, options);
  if (!endpoint.ok()) return endpoint.error();
  auto listener = std::make_shared<Listener>(io);
  if (const ErrorCode failed = open(*listener, *endpoint, address); failed) return cannot_listen(address, failed.message());
  Address real = real_address(*listener, address);
  return std::unique_ptr<Acceptor>(std::make_unique<StreamAcceptor>(std::move(listener), std::move(real), options, owner));
}

}  // namespace motley::transport
