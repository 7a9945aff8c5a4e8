// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/server/server_directory.h"

#include "linux/process/client_handle.h"

#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

namespace ib::os {
namespace {

class ServerDirectoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/softib-test-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    base = name;
    dir = base + "/run";
  }
  void TearDown() override { std::filesystem::remove_all(base); }

  std::unique_ptr<ServerDirectory> claim() {
    auto result = ServerDirectory::claim(dir, "f", reason);
    status = result.error();
    return result ? *std::move(result) : nullptr;
  }
  int connect_errno() const {
    const auto socket = own_descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, (dir + "/f.sock").c_str());
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    return ::connect(socket.get(), generic, sizeof(address)) == 0 ? 0 : errno;
  }
  bool exists(const char* name) const { return std::filesystem::exists(dir + "/" + name); }

  std::string base;
  std::string dir;
  std::string reason;
  Status status = Status::Ok;
};

TEST_F(ServerDirectoryTest, MakesAPrivateDirectoryAndSocketAndCleansUp) {
  {
    const auto place = claim();
    ASSERT_NE(place, nullptr) << reason;
    struct stat s {};
    ASSERT_EQ(::stat(dir.c_str(), &s), 0);
    EXPECT_EQ(s.st_mode & 0777u, 0700u);
    ASSERT_EQ(::stat(place->socket_path().c_str(), &s), 0);
    EXPECT_EQ(s.st_mode & 0777u, 0600u);
    EXPECT_EQ(connect_errno(), 0);
  }
  EXPECT_FALSE(exists("f.sock"));
  EXPECT_FALSE(exists("f.lock"));
  EXPECT_NE(claim(), nullptr);
}

TEST_F(ServerDirectoryTest, ASecondOneIsToldTheProcessOfTheFirst) {
  const auto first = claim();
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(claim(), nullptr);
  EXPECT_EQ(status, Status::AlreadyExists);
  EXPECT_EQ(reason, "fabric f is already up (softibd, pid " + std::to_string(::getpid()) + ")");
  EXPECT_EQ(connect_errno(), 0);  // unharmed
}

TEST_F(ServerDirectoryTest, ALivingDaemonWhoseLockFileWasDeletedIsNotedToo) {
  const auto first = claim();
  ASSERT_NE(first, nullptr);
  std::filesystem::remove(dir + "/f.lock");
  EXPECT_EQ(claim(), nullptr);
  EXPECT_EQ(status, Status::AlreadyExists);
  EXPECT_NE(reason.find("pid " + std::to_string(::getpid())), std::string::npos) << reason;
  EXPECT_EQ(connect_errno(), 0);
}

TEST_F(ServerDirectoryTest, TakesOverWhatAKilledOneLeft) {
  const pid_t child = ::fork();
  if (child == 0) {
    auto place = claim();
    (void)place.release();
    ::_exit(status == Status::Ok ? 0 : 1);
  }
  int outcome = -1;
  ASSERT_EQ(::waitpid(child, &outcome, 0), child);
  ASSERT_EQ(outcome, 0);
  EXPECT_TRUE(exists("f.sock"));
  EXPECT_EQ(connect_errno(), ECONNREFUSED);
  EXPECT_NE(claim(), nullptr) << reason;
}

TEST_F(ServerDirectoryTest, RefusesDirectoriesThatOthersCanChange) {
  ASSERT_EQ(::mkdir(dir.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(dir.c_str(), 0770), 0);
  EXPECT_EQ(claim(), nullptr);
  EXPECT_EQ(status, Status::AccessDenied);
  EXPECT_NE(reason.find("mode 0700"), std::string::npos) << reason;
  ASSERT_EQ(::rmdir(dir.c_str()), 0);
  ASSERT_EQ(::symlink("/tmp", dir.c_str()), 0);
  EXPECT_EQ(claim(), nullptr);
  EXPECT_EQ(status, Status::AccessDenied);
  std::filesystem::remove(dir);
  std::ofstream(dir) << "a file";
  EXPECT_EQ(claim(), nullptr);
  EXPECT_EQ(status, Status::AccessDenied);
}

TEST_F(ServerDirectoryTest, RefusesPathsThatAreTooLongAndFilesInTheWay) {
  dir = base + "/" + std::string(100, 'x');
  EXPECT_EQ(claim(), nullptr);
  EXPECT_EQ(status, Status::InvalidParameter);
  EXPECT_FALSE(std::filesystem::exists(dir));
  dir = base + "/no/such/parent";
  EXPECT_EQ(claim(), nullptr);
  EXPECT_EQ(status, Status::IoError);
  dir = base;
  std::ofstream(dir + "/f.sock") << "precious";
  EXPECT_EQ(claim(), nullptr);
  EXPECT_EQ(status, Status::AlreadyExists);
  EXPECT_TRUE(exists("f.sock"));
  EXPECT_FALSE(exists("f.lock"));
}

TEST_F(ServerDirectoryTest, WaitsForACommandThatLooksAtTheLock) {
  std::filesystem::create_directory(dir);
  std::filesystem::permissions(dir, std::filesystem::perms::owner_all);
  const auto lock = own_descriptor(::open((dir + "/f.lock").c_str(), O_CREAT | O_RDWR, 0600));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX), 0);
  std::thread looker([&] {
    // tidy: allow(sleep) time itself is what is tested, or a poll with a deadline
    ::usleep(30'000);
    ::unlink((dir + "/f.lock").c_str());  // and takes us for dead
    ::flock(lock.get(), LOCK_UN);
  });
  EXPECT_NE(claim(), nullptr) << reason;
  looker.join();
}

TEST_F(ServerDirectoryTest, OfManyThatStartAtOnceOneWins) {
  for (int round = 0; round < 20; ++round) {
    std::vector<std::unique_ptr<ServerDirectory>> places(4);
    std::vector<std::thread> threads;
    for (auto& place : places) {
      threads.emplace_back([this, &place] {
        std::string why;
        auto result = ServerDirectory::claim(dir, "f", why);
        if (result) place = *std::move(result);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(std::count(places.begin(), places.end(), nullptr), 3);
    EXPECT_EQ(connect_errno(), 0);
  }
}

}  // namespace
}  // namespace ib::os
