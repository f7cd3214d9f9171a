#include "runtime/disconnection_watch.h"

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <utility>

namespace motley::runtime {
namespace {

constexpr std::chrono::milliseconds confirmation_time{300};  // a process that died is noticed here within it
constexpr std::uint32_t most_in_a_row = 10;                  // then the nodes do not reach each other

}  // namespace

void DisconnectionWatch::reported(std::function<void()> confirm) {
  const auto timer = std::make_shared<boost::asio::steady_timer>(event_loop_, confirmation_time);
  timer->async_wait([here = anchor_.watch(), timer, confirm = std::move(confirm)](const boost::system::error_code& cancelled) {
    if (!cancelled && !here.gone()) confirm();
  });
}

bool DisconnectionWatch::confirmed() { return ++in_a_row_ > most_in_a_row; }

}  // namespace motley::runtime
