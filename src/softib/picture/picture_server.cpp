// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The sockets and limits of the page: a request is parsed by http_request.cpp, and live_picture.cpp
// has the answers.
#include "softib/picture/picture_server.h"

#include "setup/cli_error.h"
#include "softib/picture/http_request.h"

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read_until.hpp>
#include <asio/steady_timer.hpp>
#include <asio/streambuf.hpp>
#include <asio/write.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

namespace ib::softib {
namespace {

using asio::ip::tcp;
using std::chrono::steady_clock;

constexpr std::size_t kMostRequest = 8192;
constexpr std::size_t kMostClients = 64;
constexpr std::chrono::seconds kToSend{10};  // for a client to send its request
constexpr std::chrono::seconds kToTake{60};  // and to take the answer
constexpr std::chrono::milliseconds kBetweenChecks{500};
constexpr std::chrono::milliseconds kLeastAge{150};  // of the picture, before it is read again
constexpr int kShareOfTime = 4;  // reading a large fabric takes at most so much of the time: 1/5

// The programs of Graphviz do not get it.
void close_on_exec(int socket) {
  ::fcntl(socket, F_SETFD, FD_CLOEXEC);
}

// Several pages share one picture, which is read for the one that needs it first.
class Source {
 public:
  explicit Source(LivePicture& picture) : picture_(picture) { refresh(); }

  LivePicture& recent() {
    if (steady_clock::now() >= next_) refresh();
    return picture_;
  }

 private:
  void refresh() {
    const auto start = steady_clock::now();
    picture_.refresh();
    const auto end = steady_clock::now();
    next_ = end + std::max<steady_clock::duration>(kLeastAge, (end - start) * kShareOfTime);
  }

  LivePicture& picture_;
  steady_clock::time_point next_;
};

struct Shared {
  Source& source;
  std::uint16_t port;
  std::string token;
  std::size_t clients = 0;
};

// One request of one client. Keeps itself alive while something of it is under way.
class Client : public std::enable_shared_from_this<Client> {
 public:
  Client(tcp::socket socket, Shared& shared)
      : socket_(std::move(socket)), timer_(socket_.get_executor()), shared_(shared) {
    ++shared_.clients;
  }
  ~Client() { --shared_.clients; }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void start() {
    limit(kToSend);
    asio::async_read_until(
        socket_, input_, "\r\n\r\n",
        [self = shared_from_this()](const asio::error_code& error, std::size_t size) {
          if (!error) self->answer(size);
          // Without an end within the limit of its size it is none.
          else if (error == asio::error::not_found)
            self->send(self->refusal(400));
          else
            self->stop();
        });
  }

 private:
  void limit(std::chrono::seconds time) {
    timer_.expires_after(time);
    timer_.async_wait([weak = weak_from_this()](const asio::error_code& error) {
      const std::shared_ptr<Client> self = weak.lock();
      if (!error && self) self->stop();
    });
  }

  void stop() {
    asio::error_code ignored;
    timer_.cancel();
    socket_.close(ignored);
  }

  static std::string refusal(int status) {
    const char* words = status == 403
                            ? "The address has a token: use the one that softib has printed.\n"
                            : "There is no such page.\n";
    return http_answer(status, "text/plain", words);
  }

  void answer(std::size_t size) {
    const auto* data = static_cast<const char*>(input_.data().data());
    HttpRequest request;
    int status = parse_http_request(std::string_view(data, size), request);
    if (status == 200) status = check_http_request(request, shared_.port, shared_.token);
    if (status != 200) return send(refusal(status));
    const LivePicture& picture = shared_.source.recent();
    if (request.path == "/") {
      return send(http_answer(200, "text/html", picture.page(random_token())));
    }
    send(http_answer(200, "application/json", picture.changes_since(request.since)));
  }

  void send(std::string text) {
    output_ = std::move(text);
    limit(kToTake);
    asio::async_write(socket_, asio::buffer(output_),
                      [self = shared_from_this()](const asio::error_code&, std::size_t) {
                        asio::error_code ignored;
                        self->socket_.shutdown(tcp::socket::shutdown_both, ignored);
                        self->stop();
                      });
  }

  tcp::socket socket_;
  asio::steady_timer timer_;
  asio::streambuf input_{kMostRequest};
  std::string output_;
  Shared& shared_;
};

class Server {
 public:
  Server(asio::io_context& io, tcp::acceptor acceptor, Shared& shared, std::function<void()> check)
      : acceptor_(std::move(acceptor)),
        pause_(io),
        ticks_(io),
        shared_(shared),
        check_(std::move(check)) {
    accept();
    tick();
  }

 private:
  void accept() {
    acceptor_.async_accept([this](const asio::error_code& error, tcp::socket socket) {
      if (!error) close_on_exec(socket.native_handle());
      if (!error && shared_.clients < kMostClients) {
        std::make_shared<Client>(std::move(socket), shared_)->start();
      }
      if (!error) return accept();
      // Out of descriptors, say: the next attempt would fail at once as well.
      pause_.expires_after(kBetweenChecks);
      pause_.async_wait([this](const asio::error_code&) { accept(); });
    });
  }

  void tick() {
    ticks_.expires_after(kBetweenChecks);
    ticks_.async_wait([this](const asio::error_code&) {
      check_();
      tick();
    });
  }

  tcp::acceptor acceptor_;
  asio::steady_timer pause_, ticks_;
  Shared& shared_;
  std::function<void()> check_;
};

tcp::acceptor listen_at(asio::io_context& io, std::uint16_t port) {
  tcp::acceptor acceptor(io);
  const tcp::endpoint here(asio::ip::address_v4::loopback(), port);
  asio::error_code error;
  acceptor.open(tcp::v4(), error);
  if (!error) close_on_exec(acceptor.native_handle());
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(here, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    throw CliError(Exit::Failed,
                   fmt::format("cannot listen at 127.0.0.1:{}: {}", port, error.message()));
  }
  return acceptor;
}

}  // namespace

std::string random_token() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw CliError(Exit::Resources, fmt::format("getrandom: {}", std::strerror(errno)));
  }
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

void serve(LivePicture& picture, const ServerUse& use) {
  Source source(picture);
  Shared shared{source, use.port, random_token()};
  asio::io_context io(1);  // with it go clients, which count themselves in `shared`
  tcp::acceptor acceptor = listen_at(io, use.port);
  shared.port = acceptor.local_endpoint().port();
  const Server server(io, std::move(acceptor), shared, use.check);
  use.on_ready(fmt::format("http://127.0.0.1:{}/?token={}", shared.port, shared.token));
  io.run();
}

}  // namespace ib::softib
